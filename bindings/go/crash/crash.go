// Package crash tests what a power loss leaves of a save, within go test, using the program wrote.
// The program is found by the variable WROTE, or in PATH. See docs/ci.md.
package crash

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// The tests that have called Test.
var used sync.Map

// HasReturned reports, during a check, whether save had returned before the power loss.
func HasReturned() bool {
	answers := os.Getenv("WROTE_ANSWERS")
	return answers != "" && answers != "0"
}

// Test runs save with the folder, and then check with each folder that a power loss during save
// could have left. Save and each check run in a child process, which executes this test again up to
// this call, so a test may call Test only once. If check returns an error, the test fails, and
// reports the smallest state for which it did.
func Test(t *testing.T, folder string, save, check func(folder string) error) {
	t.Helper()
	mark := "/" + strings.ReplaceAll(t.Name(), "/", "-") + "-"
	// In a child: the job, the folder for marks that show which test has done the job, and the job's
	// folder.
	words := strings.SplitN(os.Getenv("WROTE_CRASH"), ":", 3)
	if len(words) == 3 {
		run := save
		if words[0] == "check" {
			run = check
		}
		if err := run(words[2]); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		os.WriteFile(words[1]+mark+words[0], nil, 0o600)
		os.Exit(0)
	}
	if _, isUsed := used.LoadOrStore(t, true); isUsed {
		t.Fatal("crash.Test is called twice in this test: put each call into a subtest")
	}
	wrote := os.Getenv("WROTE")
	if wrote == "" {
		wrote = "wrote"
	}
	place := t.TempDir()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	child := func(job string) []string {
		// Temporary folders that a child leaves behind are removed with the folders of this test.
		return []string{"env", "TMPDIR=" + place, "WROTE_CRASH=" + job, os.Args[0], "-test.run", pattern}
	}
	var quoted []string
	for _, word := range child("check:" + place + ":DIR") {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	arguments := []string{"trace", "--under", folder, "--check", strings.Join(quoted, " "), "--"}
	command := exec.Command(wrote, append(arguments, child("save:"+place+":"+folder)...)...)
	said, err := command.CombinedOutput()
	ended, hasEnded := err.(*exec.ExitError)
	_, unsaved := os.Stat(place + mark + "save")
	_, unchecked := os.Stat(place + mark + "check")
	switch {
	case err != nil && !hasEnded:
		t.Fatalf("%v: install wrote, or set WROTE to its path (docs/ci.md)", err)
	case err != nil && ended.ExitCode() == 125 && words[0] == "skip":
		t.Skip(string(said))
	case unsaved != nil:
		t.Fatalf("the child did not reach the end of the save:\n%s", said)
	case err == nil && unchecked != nil:
		t.Fatalf("the child did not reach the end of the check:\n%s", said)
	case err != nil:
		t.Fatal(string(said))
	}
}
