package textanalysis

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	// The word list alone. The analyzer beside it links a linear algebra library for the
	// sake of one sum, which costs some binaries over 2 MB.
	"github.com/jonreiter/govader/data"
)

// lexicon is VADER's word list. A valence lies between -4, most negative, and 4. It is
// only read once loaded, so calls share it.
type lexicon struct {
	// list has words in lower case, and emoticons as they are written.
	list map[string]float64
	// emoji has those of one character whose description has words of the list.
	emoji map[rune]float64
	// factors are what a word does to the valence of one that follows.
	factors map[string]float64
}

// loadLexicon unpacks the list, which is compiled in.
func loadLexicon() (*lexicon, error) {
	l := &lexicon{list: map[string]float64{}, emoji: map[rune]float64{}, factors: vocabulary()}
	err := eachLine("rawdata/vaderLexicon.txt", func(word, rest string) error {
		mean, _, _ := strings.Cut(rest, "\t")
		valence, err := strconv.ParseFloat(mean, 64)
		l.list[word] = valence
		return err
	})
	if err != nil {
		return nil, err
	}
	err = eachLine("rawdata/emojiUTF8Lexicon.txt", func(emoji, description string) error {
		r, size := utf8.DecodeRuneInString(emoji)
		if size < len(emoji) {
			return nil
		}
		var valence float64
		for word := range strings.FieldsSeq(description) {
			valence += l.list[word]
		}
		if valence != 0 {
			l.emoji[r] = valence
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// eachLine calls f with the first column of each line of an asset and with the others.
func eachLine(asset string, f func(first, rest string) error) error {
	raw, err := data.Asset(asset)
	if err != nil {
		return fmt.Errorf("unpack the word list: %w", err)
	}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		first, rest, ok := strings.Cut(strings.TrimSpace(string(line)), "\t")
		if !ok {
			return fmt.Errorf("%s, line %d has no tab", asset, n)
		}
		if err := f(first, rest); err != nil {
			return fmt.Errorf("%s, line %d: %w", asset, n, err)
		}
	}
	return nil
}

// word is one word, emoticon or emoji of a sentence.
type word struct {
	text    string  // in lower case, without the punctuation around it; "" for an emoji
	valence float64 // 0 if the list does not have it
	pause   bool    // punctuation follows, which ends what earlier words do to later ones
}

// words takes a sentence apart and looks its words up.
func (l *lexicon) words(sentence string) []word {
	var words []word
	for field := range strings.FieldsSeq(sentence) {
		start := 0
		for i, r := range field {
			if r < utf8.RuneSelf {
				continue
			}
			if valence, ok := l.emoji[r]; ok {
				words = l.appendWord(words, field[start:i])
				words = append(words, word{valence: valence})
				start = i + utf8.RuneLen(r)
			}
		}
		words = l.appendWord(words, field[start:])
	}
	for i := range len(words) - 1 {
		w, next := &words[i], words[i+1]
		switch {
		case w.text == "no" && next.valence != 0:
			w.valence = 0 // in "no problem" it negates and says nothing of its own
		case (w.text == "kind" || w.text == "sort") && next.text == "of":
			w.text, w.valence = w.text+" of", 0
		}
	}
	return words
}

// appendWord appends the word that text, which has no white space, consists of.
func (l *lexicon) appendWord(words []word, text string) []word {
	if text == "" {
		return words
	}
	if valence, ok := l.list[text]; ok { // first, for an emoticon is all punctuation
		return append(words, word{text: text, valence: valence})
	}
	bare := strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if bare == "" {
		if len(words) > 0 {
			words[len(words)-1].pause = true
		}
		return words
	}
	bare = strings.ToLower(bare)
	return append(words, word{text: bare, valence: l.list[bare], pause: strings.ContainsAny(text[len(text)-1:], ",;:.!?")})
}
