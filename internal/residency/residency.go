// Package residency gives memory back that only the start of the program needed.
//
// A start runs through most of the program once: package initialisation, descriptions of all kinds, tables. The kernel keeps those pages of the file mapped, some
// 120 MB of code and constants, of which a server then uses a third. DropProgram unmaps them. What is used after all comes back from the page cache, 64 KiB at a
// time, without a read from the disk.
package residency
