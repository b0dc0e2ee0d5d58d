package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/bayplan/bayplan/internal/atomicfile"
)

// restoreGap is added to the revision of a restored store. Clients that saw later revisions than the snapshot holds must not meet them again with other
// contents: with the gap every version that they know is older than the oldest that can be asked for, so that they list again.
const restoreGap = 1_000_000_000

// openTimeout bounds the wait for the lock of a database file that nobody should have open.
const openTimeout = 5 * time.Second

// WriteSnapshot writes the whole state at one revision, followed by its SHA-256 sum: etcd's own format of a snapshot. Others go on writing meanwhile.
func (s *Store) WriteSnapshot(ctx context.Context, w io.Writer) error {
	if s.external {
		return fmt.Errorf("snapshot: %w", ErrExternal)
	}
	stream, err := s.client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	_, err = io.Copy(w, stream)
	if err := errors.Join(err, stream.Close()); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// ErrDamaged is returned for a snapshot that is not whole or not what was written.
var ErrDamaged = errors.New("the snapshot is damaged")

// ReadSnapshot copies a stream of WriteSnapshot into a database file without its sum, and checks it against that. It returns the size.
func ReadSnapshot(r io.Reader, path string) (int64, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(file, r)
	if err == nil {
		size, err = cutSum(file, size)
	}
	if err == nil {
		err = file.Sync()
	}
	return size, errors.Join(err, file.Close())
}

// cutSum checks the sum at the end of the file and takes it away.
func cutSum(file *os.File, size int64) (int64, error) {
	size -= sha256.Size
	// A database consists of pages of at least 512 bytes.
	if size <= 0 || size%512 != 0 {
		return 0, fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(file, 0, size)); err != nil {
		return 0, err
	}
	sum := make([]byte, sha256.Size)
	if _, err := file.ReadAt(sum, size); err != nil {
		return 0, err
	}
	if !bytes.Equal(sum, hash.Sum(nil)) {
		return 0, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	return size, file.Truncate(size)
}

// stateBuckets are the parts of etcd's database that are the state. The others say which member it belongs to and how far its log was applied.
var stateBuckets = [][]byte{schema.Key.Name(), schema.Lease.Name(), schema.Auth.Name(), schema.AuthUsers.Name(), schema.AuthRoles.Name()}

// Restore makes the directory of an embedded etcd, which must not be there, from the database file of a snapshot. It first makes a new member with an empty
// state and then puts the snapshot's in, so that the member's log and database agree whatever the snapshot's were.
func Restore(ctx context.Context, database, dir string, timeout time.Duration) error {
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("restoring a snapshot: %s is there already", dir)
	}
	if err := restore(ctx, database, dir, timeout); err != nil {
		return errors.Join(fmt.Errorf("restoring a snapshot: %w", err), os.RemoveAll(dir))
	}
	return nil
}

func restore(ctx context.Context, database, dir string, timeout time.Duration) error {
	from, err := bolt.Open(database, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer from.Close()
	server, err := startEmbedded(ctx, Options{Dir: dir, ReadyTimeout: timeout})
	if err != nil {
		return err
	}
	server.Close()
	to, err := bolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, &bolt.Options{Timeout: openTimeout})
	if err != nil {
		return err
	}
	err = from.View(func(source *bolt.Tx) error { return graft(source, to) })
	return errors.Join(err, to.Close(), atomicfile.SyncDir(dir))
}

// graftBatch is how many keys one transaction copies, which bounds the memory it takes.
const graftBatch = 10_000

func graft(source *bolt.Tx, to *bolt.DB) error {
	for _, name := range stateBuckets {
		if err := copyBucket(source.Bucket(name), to, name); err != nil {
			return err
		}
	}
	return to.Update(func(tx *bolt.Tx) error { return moveRevision(source, tx) })
}

func copyBucket(from *bolt.Bucket, to *bolt.DB, name []byte) error {
	err := to.Update(func(tx *bolt.Tx) error {
		if tx.Bucket(name) != nil {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		_, err := tx.CreateBucket(name)
		return err
	})
	if from == nil || err != nil {
		return err
	}
	cursor := from.Cursor()
	key, value := cursor.First()
	for key != nil && err == nil {
		err = to.Update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket(name)
			bucket.FillPercent = 0.9 // keys come in order
			for i := 0; key != nil && i < graftBatch; i++ {
				if err := bucket.Put(key, value); err != nil {
					return err
				}
				key, value = cursor.Next()
			}
			return nil
		})
	}
	return err
}

// moveRevision makes etcd, when it opens the database, go on at a revision beyond all that were given out, and compact up to it.
func moveRevision(source, to *bolt.Tx) error {
	meta := source.Bucket(schema.Meta.Name())
	keys := source.Bucket(schema.Key.Name())
	if meta == nil || keys == nil {
		return fmt.Errorf("%w: it holds no state of etcd", ErrDamaged)
	}
	var latest int64
	if last, _ := keys.Cursor().Last(); last != nil {
		latest = mvcc.BytesToBucketKey(last).Main
	}
	target := to.Bucket(schema.Meta.Name())
	for _, name := range [][]byte{schema.FinishedCompactKeyName, schema.ScheduledCompactKeyName} {
		value := meta.Get(name)
		if value == nil {
			continue
		}
		latest = max(latest, mvcc.BytesToRev(value).Main)
		if err := target.Put(name, value); err != nil {
			return err
		}
	}
	next := mvcc.RevToBytes(mvcc.Revision{Main: latest + restoreGap}, mvcc.NewRevBytes())
	return target.Put(schema.ScheduledCompactKeyName, next)
}
