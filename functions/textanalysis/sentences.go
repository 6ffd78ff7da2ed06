package textanalysis

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainer writes out what word processors and phones put in place of plain characters:
// the word list has them only so, and an emoji only without the selector that asks for its
// coloured form. A dash between words without spaces would make them one.
var plainer = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`, "…", "...", "—", " — ", "\ufe0f", "")

const (
	terminators = ".!?"
	closers     = `"')]}`
)

// splitSentences returns the sentences of text, none of them empty, with single spaces
// between words. A sentence ends at an empty line, or at a period, ! or ? with white space
// after it; after a period the next letter must not be a small one, so "e.g. this" is one
// sentence.
func splitSentences(text string) []string {
	var sentences []string
	var words []string
	end := func() {
		if len(words) > 0 {
			sentences = append(sentences, strings.Join(words, " "))
			words = words[:0]
		}
	}
	for line := range strings.Lines(plainer.Replace(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			end()
		}
		for _, word := range fields {
			if len(words) > 0 && endsBetween(words[len(words)-1], word) {
				end()
			}
			words = append(words, word)
		}
	}
	end()
	return sentences
}

// endsBetween reports whether a sentence ends with word and another begins with next.
func endsBetween(word, next string) bool {
	word = strings.TrimRight(word, closers)
	stem := strings.TrimRight(word, terminators)
	if stem == word {
		return false
	}
	first, _ := utf8.DecodeRuneInString(next)
	return strings.ContainsAny(word[len(stem):], "!?") || !unicode.IsLower(first)
}

// countWords counts what has a letter or a digit in it, so neither a dash nor an emoji.
func countWords(sentences []string) int {
	n := 0
	for _, sentence := range sentences {
		for word := range strings.FieldsSeq(sentence) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
				n++
			}
		}
	}
	return n
}
