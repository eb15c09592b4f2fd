package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"berth/test/lab"
)

func TestFind(t *testing.T) {
	const host, one, two = "run/berth/admin.sock", "plugins/1111/berth-admin.sock", "plugins/2222/berth-admin.sock"
	for _, c := range []struct {
		name  string
		alive []string
		dead  []string
		want  string // empty: an error that contains all of err
		err   []string
	}{
		{"a daemon of this host", []string{host}, nil, host, nil},
		{"it goes before a plugin", []string{host, one}, nil, host, nil},
		{"a managed plugin", []string{one}, nil, one, nil},
		{"a managed plugin beside a dead daemon", []string{one}, []string{host}, one, nil},
		{"one plugin answers, one does not", []string{two}, []string{one}, two, nil},
		{"two plugins", []string{one, two}, nil, "", []string{"2 managed plugins", "--admin-socket", one, two}},
		{"nothing", nil, nil, "",
			[]string{"no Berth answers", "berth serve", "docker plugin enable", "--admin-socket"}},
		{"all dead", nil, []string{host, one, two}, "", []string{"no Berth answers"}},
		{"another plugin's socket", []string{"plugins/3333/other.sock"}, nil, "", []string{"no Berth answers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, path := range c.alive {
				lab.Listening(t, filepath.Join(dir, path))
			}
			for _, path := range c.dead {
				lab.Dead(t, filepath.Join(dir, path))
			}
			p := &Program{Env: func(string) string { return "" },
				places: places{host: filepath.Join(dir, host),
					plugins: filepath.Join(dir, "plugins/*/berth-admin.sock")}}
			client, err := p.Connect(t.Context())
			if c.want != "" {
				if err != nil || client.Socket() != filepath.Join(dir, c.want) {
					t.Fatalf("found %v, %v; want %s", client, err, c.want)
				}
				return
			}
			if err == nil {
				t.Fatalf("found %s", client.Socket())
			}
			for _, part := range c.err {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
		})
	}
}

// A named daemon is taken without a search. The flag overrides the environment.
func TestFindNamed(t *testing.T) {
	env := map[string]string{"BERTH_ADMIN_SOCKET": "/environment"}
	p := &Program{Env: func(name string) string { return env[name] }}
	if client, err := p.Connect(t.Context()); err != nil || client.Socket() != "/environment" {
		t.Errorf("with the environment: %v, %v", client, err)
	}
	p.AdminSocket = "/flag"
	if client, err := p.Connect(t.Context()); err != nil || client.Socket() != "/flag" {
		t.Errorf("with the flag: %v, %v", client, err)
	}
}

func TestDefaultPlaces(t *testing.T) {
	ok, err := filepath.Match(defaultPlaces().plugins, "/run/docker/plugins/0123abcd/berth-admin.sock")
	if !ok || err != nil {
		t.Errorf("the pattern %s does not find a managed plugin's socket: %v", defaultPlaces().plugins, err)
	}
}
