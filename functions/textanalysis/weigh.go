package textanalysis

import (
	"math"
	"slices"
	"strings"
)

// weights are how much a text says for and against; neither is negative.
type weights struct{ positive, negative float64 }

// compound is the balance of both on VADER's scale from -1 to 1. One plain word of praise
// gives about 0.4.
func (w weights) compound() float64 {
	const saturation = 15
	total := w.positive - w.negative
	return total / math.Sqrt(total*total+saturation)
}

// balance is the weaker side's share of the stronger; not a number if there is neither.
func (w weights) balance() float64 {
	return min(w.positive, w.negative) / max(w.positive, w.negative)
}

// The rules are those of VADER that matter when measured against its authors' rated
// sentences, with their constants; what intensifiers add is a share here, so that it
// cannot turn a faint word around.
const (
	negated   = -0.74
	stronger  = 1.15
	weaker    = 0.85
	exclaimed = 0.292 // what each exclamation mark adds to the stronger side
	beforeBut = 0.5
	afterBut  = 1.5

	maxExclaimed = 4
	// reach is how many words further a word acts.
	reach = 3
)

// weigh scores one sentence.
func (l *lexicon) weigh(sentence string) weights {
	words := l.words(sentence)
	but := slices.IndexFunc(words, func(w word) bool { return w.text == "but" })
	var sum weights
	for i, w := range words {
		valence := w.valence
		if valence == 0 {
			continue
		}
		for j := i - 1; j >= max(0, i-reach) && !words[j].pause; j-- {
			valence *= l.factor(words[j].text, words[j+1:i])
		}
		switch {
		case i < but:
			valence *= beforeBut
		case but >= 0:
			valence *= afterBut
		}
		sum.positive += max(valence, 0)
		sum.negative += max(-valence, 0)
	}
	emphasis := exclaimed * float64(min(strings.Count(sentence, "!"), maxExclaimed))
	switch {
	case sum.positive > sum.negative:
		sum.positive += emphasis
	case sum.negative > sum.positive:
		sum.negative += emphasis
	}
	return sum
}

// factor is what the word text does to one after it, between being the words that stand
// between them.
func (l *lexicon) factor(text string, between []word) float64 {
	if strings.HasSuffix(text, "n't") {
		return negated
	}
	f, ok := l.factors[text]
	if !ok || slices.ContainsFunc(between, func(w word) bool { return slices.Contains(undone[text], w.text) }) {
		return 1
	}
	return f
}

// undone are words after which a negation negates nothing: "never been so happy",
// "without a doubt the best".
var undone = map[string][]string{
	"never":   {"so", "this"},
	"without": {"doubt"},
}

func vocabulary() map[string]float64 {
	factors := map[string]float64{"kind of": weaker, "sort of": weaker}
	for _, group := range []struct {
		factor float64
		words  string
	}{
		{negated, `no not nor neither none nobody nothing nowhere never cannot hardly scarcely barely
			rarely seldom without despite lacking aint arent cant couldnt didnt doesnt dont hadnt
			hasnt havent isnt shouldnt wasnt werent wont wouldnt`},
		{stronger, `absolutely amazingly awfully completely deeply enormously entirely especially
			exceptionally extremely fully greatly highly hugely incredibly insanely more most
			particularly quite really remarkably so super terribly thoroughly too totally
			tremendously truly unbelievably unusually utterly very`},
		{weaker, `almost fairly kinda less little marginally mildly moderately occasionally partly
			slightly somewhat sorta`},
	} {
		for word := range strings.FieldsSeq(group.words) {
			factors[word] = group.factor
		}
	}
	return factors
}
