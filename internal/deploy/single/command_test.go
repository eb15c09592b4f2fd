package single

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script writes a compose command as a small sh script.
func script(t *testing.T, lines ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "compose")
	text := "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{file, "compose"}
}

// TestAnswering: Answering names the compose command that answers, first that of the version that made the project.
func TestAnswering(t *testing.T) {
	place := func(name, text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	plugin, bare := place("docker", "echo 5.5.0"), place("docker", "exit 1")
	older := place("docker-compose", "echo 1.29.2")
	for _, c := range []struct {
		want, made string
		path       []string
	}{
		{"docker compose", "5.5.0", []string{plugin, older}},
		{"docker compose", "", []string{plugin, older}},
		{"docker-compose", "1.29.2", []string{plugin, older}},
		{"docker compose", "1.29.2", []string{plugin}},
		{"docker-compose", "5.5.0", []string{bare, older}},
		{"docker-compose", "5.5.0", []string{older}},
		{"docker compose", "5.5.0", []string{t.TempDir()}},
		{"docker-compose", "1.29.2", []string{t.TempDir()}},
	} {
		t.Setenv("PATH", strings.Join(c.path, ":"))
		if got := Answering(t.Context(), c.made); got != c.want {
			t.Errorf("with %v and %q it is %q, not %q", c.path, c.made, got, c.want)
		}
	}
}

// TestCommand: the compose command runs as a process. The project's files and options come before the verb. The
// environment is Berth's with the additions. An error names the command and quotes its last lines.
func TestCommand(t *testing.T) {
	t.Setenv("BERTH_TEST_A", "a")
	c := Command{Words: script(t, `echo "$*,$BERTH_TEST_A,$BERTH_TEST_B"`), Project: "shop",
		Files: []string{"/a.yml", "/b.yml"}, Options: []string{"--profile", "x"}}
	got, err := c.run(t.Context(), []string{"BERTH_TEST_B=b"}, "pull", "--quiet")
	const want = "compose --project-name shop --file /a.yml --file /b.yml --profile x pull --quiet,a,b\n"
	if err != nil || string(got) != want {
		t.Errorf("it ran with %q, %v; want %q", got, err, want)
	}
	c.Words = script(t, "echo web w1", "echo db d1", "echo a warning of three words")
	hashes, err := c.Hashes(t.Context())
	if err != nil || !maps.Equal(hashes, map[string]string{"web": "w1", "db": "d1"}) {
		t.Errorf("the hashes are %v, %v", hashes, err)
	}
	c.Words = script(t, "seq 1 7 >&2", "exit 3")
	const says = "compose pull: exit status 3: 3\n4\n5\n6\n7"
	if err := c.Pull(t.Context(), nil); err == nil || !strings.HasSuffix(err.Error(), says) {
		t.Errorf("the error is %v", err)
	}
}
