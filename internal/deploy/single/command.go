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

// Command is the compose command of a project, with what it needs to find the project's files.
type Command struct {
	Words   []string // such as docker compose
	Project string
	Files   []string // absolute paths
	Options []string // further ones that come before the verb, such as --profile NAME

	// Exec runs the program with arguments and with variables added to its environment. nil: as a process.
	Exec func(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error
}

// Answering is the compose command that answers, as it is typed. Where none does in time it is `docker compose`.
func Answering(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	words, _, err := FindCommand(ctx, "")
	if err != nil {
		return "docker compose"
	}
	return strings.Join(words, " ")
}

// answerTime is how long text with a command waits for one to answer.
const answerTime = 3 * time.Second

// FindCommand is the compose command that answers: the one that is said, else `docker compose`, else docker-compose.
func FindCommand(ctx context.Context, said string) (words []string, version string, err error) {
	candidates := [][]string{{"docker", "compose"}, {"docker-compose"}}
	if said != "" {
		candidates = [][]string{strings.Fields(said)}
	}
	for _, words := range candidates {
		if version, err = versionOf(ctx, words); err == nil {
			return words, version, nil
		}
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

// Hashes are those by which Compose knows whether a container is made of a service as the files describe it now.
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

// Pull has the images of services pulled, with whatever Compose knows of how to log in.
func (c *Command) Pull(ctx context.Context, services []string) error {
	_, err := c.run(ctx, nil, append([]string{"pull", "--quiet"}, services...)...)
	return err
}

// run runs a verb; what it has written to standard output comes back, and with an error the end of what it says of it.
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

// lastLines are the last of what a command has said.
func lastLines(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	const shown = 5
	return strings.Join(lines[max(0, len(lines)-shown):], "\n")
}
