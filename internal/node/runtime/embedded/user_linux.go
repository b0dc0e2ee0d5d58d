package embedded

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// account is a line of a container's /etc/passwd.
type account struct {
	name     string
	uid, gid uint32
}

// resolveUser finds who a container runs as: what the pod says, else what the image says. Names are looked up in the container's own files, never in the machine's.
func resolveUser(rootfs string, context *cri.LinuxContainerSecurityContext, imageUser string) (*specs.User, error) {
	root, err := os.OpenRoot(rootfs) // symbolic links in the image cannot lead out
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name, groupName, _ := strings.Cut(imageUser, ":")
	switch {
	case context.GetRunAsUser() != nil:
		name, groupName = strconv.FormatInt(context.RunAsUser.Value, 10), ""
	case context.GetRunAsUsername() != "":
		name, groupName = context.RunAsUsername, ""
	}
	found, err := findAccount(root, cmp.Or(name, "0"))
	if err != nil {
		return nil, err
	}
	user := &specs.User{UID: found.uid, GID: found.gid}
	if groupName != "" {
		if user.GID, err = findGroup(root, groupName); err != nil {
			return nil, err
		}
	}
	if context.GetRunAsGroup() != nil {
		user.GID = uint32(context.RunAsGroup.Value)
	}
	if context.GetSupplementalGroupsPolicy() == cri.SupplementalGroupsPolicy_Merge && found.name != "" {
		if user.AdditionalGids, err = groupsOf(root, found.name); err != nil {
			return nil, err
		}
	}
	for _, gid := range context.GetSupplementalGroups() {
		user.AdditionalGids = append(user.AdditionalGids, uint32(gid))
	}
	slices.Sort(user.AdditionalGids)
	user.AdditionalGids = slices.Compact(user.AdditionalGids)
	return user, nil
}

// findAccount finds a user by name or number. A number need not have a line.
func findAccount(root *os.Root, wanted string) (account, error) {
	number, numeric := parseID(wanted)
	found := account{uid: number}
	known := false
	err := eachLine(root, "etc/passwd", 4, func(fields []string) bool {
		uid, ok := parseID(fields[2])
		if !ok || fields[0] != wanted && (!numeric || uid != number) {
			return true
		}
		gid, ok := parseID(fields[3])
		if ok {
			found, known = account{name: fields[0], uid: uid, gid: gid}, true
		}
		return !ok
	})
	if err != nil {
		return account{}, err
	}
	if !known && !numeric {
		return account{}, fmt.Errorf("user %q is not in the image's /etc/passwd", wanted)
	}
	return found, nil
}

func findGroup(root *os.Root, wanted string) (uint32, error) {
	number, numeric := parseID(wanted)
	known := numeric
	err := eachLine(root, "etc/group", 3, func(fields []string) bool {
		gid, ok := parseID(fields[2])
		if ok && fields[0] == wanted {
			number, known = gid, true
			return false
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	if !known {
		return 0, fmt.Errorf("group %q is not in the image's /etc/group", wanted)
	}
	return number, nil
}

// groupsOf gives the groups that /etc/group makes a user a member of.
func groupsOf(root *os.Root, user string) ([]uint32, error) {
	var gids []uint32
	err := eachLine(root, "etc/group", 4, func(fields []string) bool {
		if gid, ok := parseID(fields[2]); ok && slices.Contains(strings.Split(fields[3], ","), user) {
			gids = append(gids, gid)
		}
		return true
	})
	return gids, err
}

// maxAccountFile bounds what is read of an image's account files, in bytes.
const maxAccountFile = 4 << 20

// eachLine visits the lines of an account file that have at least so many fields, until visit says false. No file is no line.
func eachLine(root *os.Root, name string, fields int, visit func([]string) bool) error {
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil // there is none, or what there is leads out of the image
	}
	file, err := root.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(io.LimitReader(file, maxAccountFile))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		parts := strings.Split(scanner.Text(), ":")
		if len(parts) >= fields && !visit(parts) {
			return nil
		}
	}
	return scanner.Err()
}

func parseID(text string) (uint32, bool) {
	number, err := strconv.ParseUint(text, 10, 32)
	return uint32(number), err == nil
}
