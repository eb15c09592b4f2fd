package single

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Command is the compose command of a project with its options.
type Command struct {
	Words   []string // such as docker compose
	Project string
	Files   []string // absolute paths
	Options []string // further options before the verb, such as --profile NAME

	// Exec runs the program with arguments and additional environment variables. nil: as a process.
	Exec func(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error
}

// Answering returns the compose command that works on this host, for a project whose containers a version of Compose
// made. It looks first for the command of that version. If none answers in time, it is that command.
func Answering(ctx context.Context, made string) string {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	candidates := commands()
	if strings.HasPrefix(made, "1.") {
		slices.Reverse(candidates)
	}
	words, _, err := firstOf(ctx, candidates)
	if err != nil {
		words = candidates[0]
	}
	return strings.Join(words, " ")
}

// answerTime bounds the wait for compose commands to answer, which takes long on a busy machine.
const answerTime = 15 * time.Second

// commands are the compose commands that a host may have, the newer one first.
func commands() [][]string { return [][]string{{"docker", "compose"}, {"docker-compose"}} }

// firstOf returns the first command that answers, with its version.
func firstOf(ctx context.Context, candidates [][]string) (words []string, version string, err error) {
	for _, words := range candidates {
		if version, err = versionOf(ctx, words); err == nil {
			return words, version, nil
		}
	}
	return nil, "", err
}

// FindCommand returns the compose command that works: said if given, else `docker compose`, else docker-compose.
func FindCommand(ctx context.Context, said string) (words []string, version string, err error) {
	candidates := commands()
	if said != "" {
		candidates = [][]string{strings.Fields(said)}
	}
	words, version, err = firstOf(ctx, candidates)
	if err == nil {
		return words, version, nil
	}
	if said != "" {
		return nil, "", fmt.Errorf("the compose command %q does not answer: %w; name another with --compose-command",
			said, err)
	}
	return nil, "", fmt.Errorf("neither `docker compose` nor docker-compose answers here: install one, or name it "+
		"with --compose-command (%w)", err)
}

func versionOf(ctx context.Context, words []string) (string, error) {
	args := append(slices.Clone(words[1:]), "version", "--short")
	cmd := exec.CommandContext(ctx, words[0], args...)
	cmd.WaitDelay = time.Second // a plugin that docker started may keep the pipe open
	out, err := cmd.Output()
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), err
}

// Hashes returns Compose's hash of each service in the files. Compose compares it with a container's.
func (c *Command) Hashes(ctx context.Context) (map[string]string, error) {
	said, err := c.run(ctx, nil, "config", "--hash", "*")
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for line := range strings.Lines(string(said)) {
		if words := strings.Fields(line); len(words) == 2 {
			hashes[words[0]] = words[1]
		}
	}
	return hashes, nil
}

// Pull pulls the images of services, with Compose's credentials.
func (c *Command) Pull(ctx context.Context, services []string) error {
	_, err := c.run(ctx, nil, append([]string{"pull", "--quiet"}, services...)...)
	return err
}

// run runs a verb and returns its standard output. Its error has the end of the error output.
func (c *Command) run(ctx context.Context, environ []string, verb ...string) ([]byte, error) {
	args := append(slices.Clone(c.Words[1:]), "--project-name", c.Project)
	for _, file := range c.Files {
		args = append(args, "--file", file)
	}
	args = append(append(args, c.Options...), verb...)
	run := c.Exec
	if run == nil {
		run = c.process
	}
	var out, said bytes.Buffer
	if err := run(ctx, args, environ, &out, &said); err != nil {
		return out.Bytes(), fmt.Errorf("%s %s: %w: %s", strings.Join(c.Words, " "), verb[0], err,
			lastLines(append(said.Bytes(), out.Bytes()...)))
	}
	return out.Bytes(), nil
}

func (c *Command) process(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, c.Words[0], args...)
	cmd.Env = append(os.Environ(), environ...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd.Run()
}

// lastLines returns the last lines of a command's output.
func lastLines(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	const shown = 5
	return strings.Join(lines[max(0, len(lines)-shown):], "\n")
}
