// Package textanalysis has the tool text_analysis, which tells the sentiment of an
// English text.
//
// It scores by the word list and the main rules of VADER (Hutto and Gilbert, 2014), which
// know negation, intensifiers, "but", emoticons and emoji, but neither irony nor a
// subject's jargon. Nothing is sent anywhere, and the same text always has the same answer.
package textanalysis

import (
	"context"
	"math"
	"strings"
	"sync"

	"github.com/thaw-mcp/thaw"
)

// In is what text_analysis takes.
type In struct {
	Text     string `json:"text" jsonschema:"the text to analyse" minLength:"1" maxLength:"20000"`
	Language string `json:"language" jsonschema:"the text's language as a BCP 47 tag; only English is supported" default:"en" maxLength:"35"`
}

// Out is what text_analysis answers.
//
// Score says how clearly the text has its sentiment, from 0 to 1 in steps of 0.01:
//
//   - positive, negative: how strong it is, VADER's compound for the mean of the sentences
//     that express anything;
//   - neutral: how far from any sentiment, 1 if no word of it expresses anything;
//   - mixed: how evenly both sides weigh, at least 0.5.
type Out struct {
	Sentiment string  `json:"sentiment" jsonschema:"mixed: both sides are expressed, the weaker at least half as much as the stronger" enum:"positive,negative,neutral,mixed"`
	Score     float64 `json:"score" jsonschema:"how clearly the text has that sentiment; it is no probability" minimum:"0" maximum:"1"`
	Words     int     `json:"words" jsonschema:"how many words the text has" minimum:"0"`
	Sentences int     `json:"sentences" jsonschema:"how many sentences the text has" minimum:"1"`
}

// New makes the tool text_analysis. The word list is unpacked on the first call, once,
// in some 10 ms, so that a cold start which calls another tool does not pay for it.
func New() *thaw.Tool {
	lexicon := sync.OnceValues(loadLexicon)
	return thaw.NewTool("text_analysis",
		"Tell the sentiment of an English text (positive, negative, neutral or mixed), how clear it is, and count words and sentences. Made for opinions in plain words; does not understand irony.",
		func(ctx context.Context, in In) (Out, error) {
			if !isEnglish(in.Language) {
				return Out{}, thaw.Errorf("language %q is not supported; leave it out or give %q for English", in.Language, "en")
			}
			sentences := splitSentences(in.Text)
			if len(sentences) == 0 {
				return Out{}, thaw.Errorf("text has nothing but white space; give the text to analyse")
			}
			l, err := lexicon()
			if err != nil {
				return Out{}, err
			}
			out := l.judge(ctx, sentences)
			out.Words, out.Sentences = countWords(sentences), len(sentences)
			return out, nil
		},
		&thaw.ToolOptions{Title: "Text analysis", ReadOnly: true, Idempotent: true, ClosedWorld: true})
}

// isEnglish holds for en and what BCP 47 derives from it, such as en-GB.
func isEnglish(tag string) bool {
	primary, _, _ := strings.Cut(tag, "-")
	return strings.EqualFold(primary, "en")
}

const (
	// neutralBelow is the band around 0 that VADER's authors call neutral.
	neutralBelow = 0.05
	// mixedFrom is the share of the stronger side that the weaker has to reach.
	mixedFrom = 0.5
)

// judge averages over sentences, because the compound was made for single ones: over the
// sum of a long text it runs to 1 or -1, however mild the text is. Sentences that express
// nothing are left out, or the facts around an opinion would water it down.
func (l *lexicon) judge(ctx context.Context, sentences []string) Out {
	var sum weights
	expressive := 0.0
	for i, sentence := range sentences {
		thaw.Progress(ctx, float64(i+1), float64(len(sentences)), "sentences")
		if w := l.weigh(sentence); w != (weights{}) {
			expressive++
			sum.positive += w.positive
			sum.negative += w.negative
		}
	}
	if expressive == 0 {
		return Out{Sentiment: "neutral", Score: 1}
	}
	balance := sum.balance()
	compound := weights{sum.positive / expressive, sum.negative / expressive}.compound()
	switch {
	case balance >= mixedFrom:
		return Out{Sentiment: "mixed", Score: round(balance)}
	case compound >= neutralBelow:
		return Out{Sentiment: "positive", Score: round(compound)}
	case compound <= -neutralBelow:
		return Out{Sentiment: "negative", Score: round(-compound)}
	default:
		return Out{Sentiment: "neutral", Score: round(1 - math.Abs(compound))}
	}
}

// round hides the last bits, which differ between processors that fuse a multiplication
// with an addition and those that do not.
func round(score float64) float64 { return math.Round(score*100) / 100 }
