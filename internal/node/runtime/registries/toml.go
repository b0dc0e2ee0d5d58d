package registries

import (
	"fmt"
	"strings"
)

// table is a table of a TOML file, with its name in parts. Of TOML, only what a hosts.toml needs is understood: tables, and keys with strings, booleans
// or lists of strings. Anything else is an error.
type table struct {
	name   []string
	line   int
	values map[string]value
}

// value is a string, or strings, or a boolean.
type value struct {
	list  []string
	truth bool
	line  int
}

// parse reads the tables in their order. The first one, without a name, is what stands before all others.
func parse(text string) ([]table, error) {
	p := &scanner{rest: text, line: 1}
	tables := []table{{values: map[string]value{}}}
	for {
		p.blank(true)
		if p.rest == "" {
			return tables, nil
		}
		if p.rest[0] == '[' {
			t := table{line: p.line, values: map[string]value{}}
			var err error
			if t.name, err = p.tableName(); err != nil {
				return nil, err
			}
			tables = append(tables, t)
		} else if err := p.pair(tables[len(tables)-1].values); err != nil {
			return nil, err
		}
		if err := p.lineEnd(); err != nil {
			return nil, err
		}
	}
}

// scanner goes through the text from its beginning to its end.
type scanner struct {
	rest string
	line int
}

func (p *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{p.line}, args...)...)
}

// blank skips blanks, and with lines also line ends and comments.
func (p *scanner) blank(lines bool) {
	for p.rest != "" {
		switch c := p.rest[0]; {
		case c == ' ' || c == '\t':
		case lines && c == '#':
			p.comment()
			continue
		case lines && (c == '\n' || c == '\r'):
			if c == '\n' {
				p.line++
			}
		default:
			return
		}
		p.rest = p.rest[1:]
	}
}

func (p *scanner) comment() {
	if i := strings.IndexByte(p.rest, '\n'); i >= 0 {
		p.rest = p.rest[i:]
		return
	}
	p.rest = ""
}

// lineEnd wants nothing more on the line.
func (p *scanner) lineEnd() error {
	p.blank(false)
	if p.rest != "" && p.rest[0] == '#' {
		p.comment()
	}
	if p.rest != "" && p.rest[0] != '\n' && !strings.HasPrefix(p.rest, "\r\n") {
		return p.errorf("unexpected %q", firstOf(p.rest))
	}
	return nil
}

func firstOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 20)]
}

// tableName reads [a."b".c].
func (p *scanner) tableName() ([]string, error) {
	p.rest = p.rest[1:]
	if strings.HasPrefix(p.rest, "[") {
		return nil, p.errorf("arrays of tables are not understood")
	}
	var parts []string
	for {
		part, err := p.key()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		p.blank(false)
		switch {
		case strings.HasPrefix(p.rest, "."):
			p.rest = p.rest[1:]
		case strings.HasPrefix(p.rest, "]"):
			p.rest = p.rest[1:]
			return parts, nil
		default:
			return nil, p.errorf("a table's name must end with ]")
		}
	}
}

const bareKey = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// key reads one part of a name: bare or quoted.
func (p *scanner) key() (string, error) {
	p.blank(false)
	if p.rest != "" && (p.rest[0] == '"' || p.rest[0] == '\'') {
		return p.text()
	}
	end := len(p.rest) - len(strings.TrimLeft(p.rest, bareKey))
	if end == 0 {
		return "", p.errorf("a name is missing before %q", firstOf(p.rest))
	}
	key := p.rest[:end]
	p.rest = p.rest[end:]
	return key, nil
}

// pair reads key = value.
func (p *scanner) pair(into map[string]value) error {
	key, err := p.key()
	if err != nil {
		return err
	}
	p.blank(false)
	if !strings.HasPrefix(p.rest, "=") {
		return p.errorf("%q must be followed by =", key)
	}
	p.rest = p.rest[1:]
	p.blank(false)
	if _, twice := into[key]; twice {
		return p.errorf("%q is set twice", key)
	}
	v := value{line: p.line}
	switch {
	case strings.HasPrefix(p.rest, "true"), strings.HasPrefix(p.rest, "false"):
		v.truth = p.rest[0] == 't'
		p.rest = p.rest[map[bool]int{true: 4, false: 5}[v.truth]:]
	case strings.HasPrefix(p.rest, "["):
		v.list, err = p.array()
	default:
		var text string
		text, err = p.text()
		v.list = []string{text}
	}
	into[key] = v
	return err
}

// array reads ["a", "b"], over several lines if need be.
func (p *scanner) array() ([]string, error) {
	p.rest = p.rest[1:]
	var out []string
	for {
		p.blank(true)
		if strings.HasPrefix(p.rest, "]") {
			p.rest = p.rest[1:]
			return out, nil
		}
		text, err := p.text()
		if err != nil {
			return nil, err
		}
		out = append(out, text)
		p.blank(true)
		if strings.HasPrefix(p.rest, ",") {
			p.rest = p.rest[1:]
		} else if !strings.HasPrefix(p.rest, "]") {
			return nil, p.errorf("a list must go on with , or end with ]")
		}
	}
}

var escapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t", `\n`, "\n")

// text reads a string: "with escapes" or 'as it is'.
func (p *scanner) text() (string, error) {
	if p.rest == "" || p.rest[0] != '"' && p.rest[0] != '\'' {
		return "", p.errorf("a string, true, false or a list of strings is missing at %q", firstOf(p.rest))
	}
	quote := p.rest[0]
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\n':
			return "", p.errorf("a string does not end")
		case c == '\\' && quote == '"':
			i++
		case c == quote:
			text := p.rest[1:i]
			p.rest = p.rest[i+1:]
			if quote == '"' {
				text = escapes.Replace(text)
			}
			return text, nil
		}
	}
	return "", p.errorf("a string does not end")
}
