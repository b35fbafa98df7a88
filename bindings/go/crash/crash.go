// Package crash tests what a power loss leaves of a save, within go test, by the program wrote.
// The program is found by the variable WROTE or in PATH. See docs/ci.md.
package crash

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// HasReturned tells a check whether save had returned before the power loss.
func HasReturned() bool {
	answers := os.Getenv("WROTE_ANSWERS")
	return answers != "" && answers != "0"
}

// Test runs save with the folder, and then check with each folder that a power loss during save
// could have left. Each runs in a child: this test of this program, executed again up to this call.
// The test fails with the smallest state for which check returns an error.
func Test(t *testing.T, folder string, save, check func(folder string) error) {
	t.Helper()
	job, place, isChild := strings.Cut(os.Getenv("WROTE_CRASH"), ":")
	if isChild {
		run := save
		if job == "check" {
			run = check
		}
		if err := run(place); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	wrote := os.Getenv("WROTE")
	if wrote == "" {
		wrote = "wrote"
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	child := func(job string) []string {
		return []string{"env", "WROTE_CRASH=" + job, os.Args[0], "-test.run", strings.Join(parts, "/")}
	}
	var quoted []string
	for _, word := range child("check:DIR") {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	arguments := []string{"trace", "--under", folder, "--check", strings.Join(quoted, " "), "--"}
	command := exec.Command(wrote, append(arguments, child("save:"+folder)...)...)
	said, err := command.CombinedOutput()
	ended, hasEnded := err.(*exec.ExitError)
	switch {
	case err == nil:
	case !hasEnded:
		t.Fatalf("%v: install wrote, or set WROTE to its path (docs/ci.md)", err)
	case ended.ExitCode() == 125 && job == "skip":
		t.Skip(string(said))
	default:
		t.Fatal(string(said))
	}
}
