package sqlitestore

// Statements are for the test of their plans.
var Statements = statements
