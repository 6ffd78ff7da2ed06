package textanalysis_test

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/functions/textanalysis"
	"github.com/thaw-mcp/thaw/thawtest"
)

func analyse(t *testing.T, tool *thaw.Tool, text string) textanalysis.Out {
	t.Helper()
	return thawtest.Output[textanalysis.Out](thawtest.Start(t, tool, map[string]any{"text": text}, nil))
}

func TestSentiment(t *testing.T) {
	tool := textanalysis.New()
	tests := []struct {
		name, text       string
		sentiment        string
		min, max         float64
		words, sentences int
	}{
		{"greeting without feeling", "Hello world", "neutral", 1, 1, 2, 1},
		{"praise", "Thank you so much, this is wonderful!", "positive", 0.7, 0.8, 7, 1},
		{"strong praise", "I absolutely LOVE it, the best phone I have ever had, amazing and beautiful!!!", "positive", 0.95, 1, 14, 1},
		{"complaint", "I hate this. It is the worst.", "negative", 0.55, 0.65, 7, 2},
		{"plain fact", "The meeting is at 3 pm on Tuesday.", "neutral", 1, 1, 8, 1},
		{"negated praise", "This is not good.", "negative", 0.3, 0.4, 4, 1},
		{"negated praise, typographic apostrophe", "I don’t like it", "negative", 0.2, 0.3, 4, 1},
		{"negated blame", "Not bad at all", "positive", 0.4, 0.45, 4, 1},
		{"negation three words on", "This was not a very good idea", "negative", 0.3, 0.45, 7, 1},
		{"negation ends at a comma", "No, it is great", "positive", 0.4, 0.5, 4, 1},
		{"negation ends at a dash", "Not mine — great", "positive", 0.6, 0.65, 3, 1},
		{"no, in front of a word of the list", "No problem", "positive", 0.2, 0.35, 2, 1},
		{"no, by itself", "No", "negative", 0.25, 0.35, 1, 1},
		{"never, as praise", "I have never been so happy", "positive", 0.5, 0.65, 6, 1},
		{"never, as blame", "She is never happy", "negative", 0.4, 0.5, 4, 1},
		{"without doubt", "Without doubt the best", "positive", 0.7, 0.8, 4, 1},
		{"kind, as an adverb", "It was kind of boring", "negative", 0.2, 0.35, 5, 1},
		{"kind, as an adjective", "A kind woman", "positive", 0.5, 0.55, 3, 1},
		{"praise in typographic quotes", "They call it “great”", "positive", 0.6, 0.65, 4, 1},
		{"praise before an ellipsis", "It was great… We left.", "positive", 0.6, 0.65, 5, 2},
		{"praise beside a dash", "It was great—really", "positive", 0.6, 0.65, 4, 1},
		{"opinion among facts", "I love it. It came on Tuesday. The box was brown.", "positive", 0.6, 0.7, 11, 3},
		{"two sides, one sentence", "I love and hate it", "mixed", 0.8, 1, 5, 1},
		{"two sides, two sentences", "The food was wonderful. The service was terrible.", "mixed", 0.75, 0.8, 8, 2},
		{"praise after but", "The room was ugly, but wonderful", "positive", 0.55, 0.65, 6, 1},
		{"blame after but", "The room was wonderful, but ugly", "negative", 0.4, 0.6, 6, 1},
		{"one side outweighs", "The plot was good, but the characters are uncompelling and the dialog is not great.", "negative", 0.6, 0.8, 15, 1},
		{"sides that cancel out unevenly", "Sales rose sharply, a success; costs are a problem, a worry, a risk and a burden.", "negative", 0.3, 0.9, 16, 1},
		{"almost no feeling", "It is only slightly okay", "positive", 0.05, 0.2, 5, 1},
		{"too faint to count", "We awaited the train", "neutral", 0.97, 0.98, 4, 1},
		{"emoji alone", "😀", "positive", 0.3, 0.4, 0, 1},
		{"sad emoji", "😭😭", "negative", 0.4, 0.8, 0, 1},
		{"emoji with a selector", "☹️", "negative", 0.3, 0.5, 0, 1},
		{"emoticon", "See you tomorrow :)", "positive", 0.4, 0.5, 3, 1},
		{"emoticon of letters", "On our way :D", "positive", 0.4, 0.6, 4, 1},
		{"emoji between words", "good😀great", "positive", 0.8, 0.9, 1, 1},
		{"words across lines", "It was\ngood\tand\r\nuseful", "positive", 0.6, 0.75, 5, 1},
		{"paragraphs", "A heading\n\nA line", "neutral", 1, 1, 4, 2},
		{"punctuation alone", "?!", "neutral", 1, 1, 0, 1},
		{"another script", "今日は良い天気です", "neutral", 1, 1, 1, 1},
		{"no reply to markup or to JSON", `{"sentiment":"positive"} <b>x</b>`, "neutral", 1, 1, 2, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := analyse(t, tool, tt.text)
			if got.Sentiment != tt.sentiment || got.Score < tt.min || got.Score > tt.max {
				t.Errorf("got %s %v, want %s and a score from %v to %v", got.Sentiment, got.Score, tt.sentiment, tt.min, tt.max)
			}
			if got.Words != tt.words || got.Sentences != tt.sentences {
				t.Errorf("got %d words in %d sentences, want %d in %d", got.Words, got.Sentences, tt.words, tt.sentences)
			}
		})
	}
}

// TestStronger: the first text of each pair says the same as the second, more clearly.
func TestStronger(t *testing.T) {
	tool := textanalysis.New()
	tests := []struct{ name, clearer, fainter string }{
		{"intensifier", "The room was very good", "The room was good"},
		{"intensifier of blame", "The room was really bad", "The room was bad"},
		{"two intensifiers", "The room was really very good", "The room was very good"},
		{"without a dampener", "The room was good", "The room was slightly good"},
		{"without a dampener of two words", "The room was good", "The room was sort of good"},
		{"exclamation", "The room was good!", "The room was good"},
		{"exclamation of blame", "The room was bad!!!", "The room was bad!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clearer, fainter := analyse(t, tool, tt.clearer), analyse(t, tool, tt.fainter)
			if clearer.Sentiment != fainter.Sentiment || clearer.Score <= fainter.Score {
				t.Errorf("%q: %s %v\n%q: %s %v\nwant the same sentiment and a higher score for the first", tt.clearer, clearer.Sentiment, clearer.Score, tt.fainter, fainter.Sentiment, fainter.Score)
			}
		})
	}
	if shout, scream := analyse(t, tool, "Good!!!!"), analyse(t, tool, "Good"+strings.Repeat("!", 400)); shout != scream {
		t.Errorf("4 exclamation marks give %+v, 400 %+v; want the same", shout, scream)
	}
}

func TestSentences(t *testing.T) {
	tool := textanalysis.New()
	tests := []struct {
		name, text string
		want       int
	}{
		{"no end mark", "A title", 1},
		{"each end mark", "One. Two! Three? Four… Five?! Six.", 6},
		{"small letter after a period", "Trains, e.g. the night train, ran. they were late", 1},
		{"small letter after other marks", "what? yes! no", 3},
		{"number with a point", "Version 3.5 is out. Get it at example.com.", 2},
		{"mark inside quotes", `"Stop!" He left. “Where?” Home.`, 4},
		{"mark inside brackets", "It rained (all day.) She stayed.", 2},
		{"digit and other script after a period", "It is 5. 6 is next. Ça va.", 3},
		{"line break", "one\ntwo", 1},
		{"empty lines", "\n\none\n\n \ntwo\r\n\r\nthree\n\n", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := analyse(t, tool, tt.text)
			if got.Sentences != tt.want {
				t.Errorf("%q: got %d sentences, want %d", tt.text, got.Sentences, tt.want)
			}
		})
	}
}

// TestLongText: VADER's sum over a long text runs to 1 however mild it is; ours must not.
func TestLongText(t *testing.T) {
	tool := textanalysis.New()
	const sentence = "The room was okay. "
	one, many := analyse(t, tool, sentence), analyse(t, tool, strings.Repeat(sentence, 1000))
	if one.Sentiment != "positive" || many.Sentiment != one.Sentiment || many.Score != one.Score {
		t.Errorf("one sentence: %+v; the same 1000 times: %+v; want the same sentiment and score", one, many)
	}
	if many.Sentences != 1000 || many.Words != 4*1000 {
		t.Errorf("got %d words in %d sentences, want %d in %d", many.Words, many.Sentences, 4*1000, 1000)
	}
	longest := analyse(t, tool, strings.Repeat("é", 20_000))
	if longest.Sentiment != "neutral" || longest.Words != 1 {
		t.Errorf("20000 letters: got %+v, want one neutral word", longest)
	}
}

func TestLanguage(t *testing.T) {
	tool := textanalysis.New()
	for _, language := range []string{"en", "EN", "en-GB", "en-Latn-US"} {
		t.Run(language, func(t *testing.T) {
			got := thawtest.Output[textanalysis.Out](thawtest.Start(t, tool, textanalysis.In{Text: "I love it", Language: language}, nil))
			if got.Sentiment != "positive" {
				t.Errorf("got %+v, want positive", got)
			}
		})
	}
}

// TestRefused: all of these are results that the model reads (F-16), not protocol errors.
func TestRefused(t *testing.T) {
	tool := textanalysis.New()
	tests := []struct {
		name string
		args map[string]any
		want []string
	}{
		{"no text", map[string]any{}, []string{"text"}},
		{"empty text", map[string]any{"text": ""}, []string{"text", "1"}},
		{"white space", map[string]any{"text": " \n\t\u00a0"}, []string{"text has nothing but white space"}},
		{"invisible", map[string]any{"text": "\ufe0f"}, []string{"text has nothing but white space"}},
		{"too long", map[string]any{"text": strings.Repeat("a", 20_001)}, []string{"text", "20000"}},
		{"text is no string", map[string]any{"text": 7}, []string{"text", "string"}},
		{"German", map[string]any{"text": "wunderbar", "language": "de"}, []string{`"de"`, "not supported", `"en"`}},
		{"a tag that only begins like English", map[string]any{"text": "good", "language": "enm"}, []string{`"enm"`, "not supported"}},
		{"no language", map[string]any{"text": "good", "language": ""}, []string{`""`, "not supported"}},
		{"unknown argument", map[string]any{"text": "good", "tone": "kind"}, []string{"tone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call := thawtest.Start(t, tool, tt.args, nil)
			if !call.IsError() {
				t.Fatalf("want a tool error, got %q and error %v", call.Text(), call.Err())
			}
			for _, want := range tt.want {
				if !strings.Contains(call.Text(), want) {
					t.Errorf("the text %q does not say %s", call.Text(), want)
				}
			}
		})
	}
}

// TestConcurrentFirstCalls: the word list is unpacked once, whoever comes first.
func TestConcurrentFirstCalls(t *testing.T) {
	tool := textanalysis.New()
	var wait sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wait.Go(func() {
			answers[i] = thawtest.Start(t, tool, textanalysis.In{Text: "I love it", Language: "en"}, nil).Text()
		})
	}
	wait.Wait()
	for i, answer := range answers {
		if answer != answers[0] || !strings.Contains(answer, "positive") {
			t.Errorf("call %d: got %s, want what call 0 got, a positive sentiment: %s", i, answer, answers[0])
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"Hello world", "not good", "I ❤️ it!!! But… no", "…", "but but\n\nBUT", "kind of", "never so this good", "x—\"y.\" Z", "no no no or no", "\u00a0"} {
		f.Add(seed)
	}
	tool := textanalysis.New()
	f.Fuzz(func(t *testing.T, text string) {
		args, err := json.Marshal(textanalysis.In{Text: text, Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		result, err := tool.Call(t.Context(), args)
		if err != nil {
			if strings.TrimSpace(strings.ReplaceAll(text, "\ufe0f", "")) != "" {
				t.Fatalf("%q was refused: %v", text, err)
			}
			return
		}
		var out textanalysis.Out
		if err := json.Unmarshal(result.StructuredContent, &out); err != nil {
			t.Fatal(err)
		}
		switch out.Sentiment {
		case "positive", "negative", "neutral", "mixed":
		default:
			t.Errorf("sentiment %q", out.Sentiment)
		}
		if math.IsNaN(out.Score) || out.Score < 0 || out.Score > 1 || out.Sentences < 1 {
			t.Errorf("%q: %+v", text, out)
		}
		again, err := tool.Call(t.Context(), args)
		if err != nil || string(again.StructuredContent) != string(result.StructuredContent) {
			t.Errorf("a second call gave %s and %v, the first %s", again.StructuredContent, err, result.StructuredContent)
		}
	})
}

func BenchmarkText(b *testing.B) {
	tool := textanalysis.New()
	for name, text := range map[string]string{
		"sentence":        "The plot was good, but the characters are uncompelling and the dialog is not great.",
		"longest":         strings.Repeat("The room was okay, not great. ", 666),
		"shortest words":  strings.Repeat("! ", 10_000),
		"emoji":           strings.Repeat("😀", 20_000),
		"longest negated": strings.Repeat("not no ", 2_857),
	} {
		args, err := json.Marshal(textanalysis.In{Text: text, Language: "en"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tool.Call(b.Context(), args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
