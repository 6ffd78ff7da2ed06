// Package dynamostore is a task.Store, a task.Sweeper with it, on one DynamoDB table. Whoever
// operates a deployment makes the table as Table and TimeToLive have it; this package needs
// dynamodb:GetItem, PutItem, UpdateItem and Query on it and Query on its index.
//
// # Key schema
//
// The table has the partition key p and the sort key s, both strings. All items of a task have
// one partition, so that a Query reads what belongs together.
//
//	p        s                       item                                      put if there is
//	T#ID     B#WRITE#SEQ             entry of the journal with which it began
//	T#ID     C#WRITE                 call
//	T#ID     H                       head                                      none
//	T#ID     I#NAME#WRITE            answer
//	T#ID     J#SEQ                   entry of the journal                      none of a higher epoch e
//	T#ID     O#EPOCH                 outcome
//	T#ID     Q#EPOCH#NAME            question
//	T#ID     X#WRITE#PART#NUMBER     piece of a part of more than 350 KB
//	U#CALL   U                       record of the rounds of a call            none, an earlier round, or this one given back
//
// SEQ and EPOCH have ten digits. WRITE names one Create or Commit at random. What it puts of
// calls, answers and first entries counts only once the head names WRITE, in c, w and b: two
// writers that meet, or one that died before it wrote the head, never get their parts into
// the record of another. The head stands between what is read with it: C to H is a call, H to
// I answers, H to J the journal.
//
// The head has one attribute for each field of task.Head that is not zero. A Commit sets or
// removes those that it knows and no other, so what a newer version keeps beside them
// survives an older one. It is conditional on the version v, and on the expiry ex in
// milliseconds, which is far away for a task that never expires. x is the table's
// TimeToLive, in seconds and rounded up: of a head its expiry, of a part a day more. Raise the
// expiry of a task by less than that day; parts keep the one they were put with.
//
// The index due is sparse: a head is in it while it has a wake d, in milliseconds, under its
// shard q, due#00 to due#15.
//
// # The life of a task
//
//	create   C#w1 put; H put with v=1, b=w1, c=w1, q and d
//	claim    H read; H updated to v=2; C# to H and H to J queried
//	entry    J#0000000000 put; H updated to v=3 with the length of the journal
//	park     H updated to v=4 with the questions, without d
//	answer   H read; I#NAME#w5 put; H updated to v=5 with w5 added to w, and d
//	claim    as above
//	finish   O#EPOCH put if it is more than the head may carry; H updated, without d
//	expiry   DynamoDB removes H, and a day later the rest
//
// # Costs and limits
//
// A write unit covers 1 KB and a strong read unit 4 KB, so the head should stay below the one
// while it is worked on, and always below the other. An answer adds nine bytes to it for as long
// as the task lives. Parts are of any size: what is over 350 KB is cut, the pieces are put
// first and eight at a time. The head and a record of rounds are one item each, which ends
// at 400 KB.
//
// # Failures
//
// What may pass is tried again, four times in all with a growing pause, each try no longer
// than Options.Attempt: a frozen instance wakes with dead connections. A try may have been
// applied although its answer was lost; the condition of the next one fails then, so no such
// failure is passed on before what is there was looked at. An error other than those the
// contract names says that the last try failed, and that any of them may have been applied.
package dynamostore
