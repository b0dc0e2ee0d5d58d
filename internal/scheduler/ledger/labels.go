package ledger

// LabelColumn holds the value that each node has for one label key, as a small number: 0 for nodes without the label.
// It is made the first time that somebody asks for the key, and kept up to date from then on.
type LabelColumn struct {
	Key string
	// Value is indexed by slot.
	Value []int32

	values []string
	uses   []int32
	index  map[string]int32
	free   []int32
}

// Label returns the column of a label key.
func (l *Ledger) Label(key string) *LabelColumn {
	if column, ok := l.columns[key]; ok {
		return column
	}
	column := &LabelColumn{
		Key: key, Value: make([]int32, len(l.nodes), cap(l.nodes)),
		values: []string{""}, uses: []int32{0}, index: map[string]int32{},
	}
	l.columns[key] = column
	l.Live.Each(func(slot int32) { column.set(slot, l.nodes[slot].labels) })
	return column
}

// Len is one more than the largest number of a value, which tables indexed by values need as their length.
func (c *LabelColumn) Len() int { return len(c.values) }

// Name returns the value with the given number.
func (c *LabelColumn) Name(value int32) string { return c.values[value] }

// InUse reports whether any node has the value.
func (c *LabelColumn) InUse(value int32) bool { return c.uses[value] > 0 }

func (c *LabelColumn) set(slot int32, labels map[string]string) {
	value := int32(0)
	if name, ok := labels[c.Key]; ok {
		value = c.number(name)
		c.uses[value]++
	}
	if old := c.Value[slot]; old != 0 {
		if c.uses[old]--; c.uses[old] == 0 {
			delete(c.index, c.values[old])
			c.values[old] = ""
			c.free = append(c.free, old)
		}
	}
	c.Value[slot] = value
}

func (c *LabelColumn) number(name string) int32 {
	if value, ok := c.index[name]; ok {
		return value
	}
	var value int32
	if n := len(c.free); n > 0 {
		value, c.free = c.free[n-1], c.free[:n-1]
		c.values[value] = name
	} else {
		value = int32(len(c.values))
		c.values, c.uses = append(c.values, name), append(c.uses, 0)
	}
	c.index[name] = value
	return value
}
