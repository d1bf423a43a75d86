package double

import (
	"bytes"
	"encoding/json"

	"example.com/events/internal/strict"
)

// merge puts the members of patch in place of those of text, at any depth. An object is
// merged into each element of an array; everything else replaces what it meets. The members
// that stay keep their place and their bytes, and new ones come last. Both must be JSON.
func merge(text, patch []byte) []byte {
	var merged bytes.Buffer
	json.Compact(&merged, mergeRaw(text, patch)) // which is JSON
	return merged.Bytes()
}

func mergeRaw(text, patch []byte) []byte {
	changes, isObject := readMembers(patch)
	if !isObject {
		return patch
	}
	members, isObject := readMembers(text)
	if isObject {
		for _, change := range changes {
			members = change.in(members)
		}
		return writeMembers(members)
	}
	var elements []json.RawMessage
	json.Unmarshal(text, &elements) // nil unless it is an array
	if elements == nil {
		return patch
	}
	for i, element := range elements {
		elements[i] = mergeRaw(element, patch)
	}
	return strict.Encode(elements)
}

// jsonMember is a member of a JSON object.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// in merges a change into the members of an object.
func (change jsonMember) in(members []jsonMember) []jsonMember {
	for i, m := range members {
		if m.name == change.name {
			members[i].value = mergeRaw(m.value, change.value)
			return members
		}
	}
	return append(members, change)
}

// readMembers returns the members of an object in their order, or that the text is none.
func readMembers(text []byte) (members []jsonMember, isObject bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	begin, _ := d.Token()
	if begin != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, _ := d.Token()
		m := jsonMember{}
		m.name, _ = name.(string)
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		members = append(members, m)
	}
	return members, true
}

func writeMembers(members []jsonMember) []byte {
	text := []byte("{")
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, strict.Encode(m.name)...)
		text = append(text, ':')
		text = append(text, m.value...)
	}
	return append(text, '}')
}
