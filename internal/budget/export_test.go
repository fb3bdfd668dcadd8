package budget

// Used returns how many bytes are counted.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}
