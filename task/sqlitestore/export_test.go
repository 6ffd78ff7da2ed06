package sqlitestore

// RemoveExpired is for the test of its plan.
const RemoveExpired = removeExpired
