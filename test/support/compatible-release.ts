/**
 * The commit of the release beside which this one must run during a rolling upgrade. The long chaos test
 * starts it from the history of the repository. A release replaces this line with its own commit.
 */
export const compatibleRelease = "b5925269398a0f03813e7630097f62446a8a0ca6"
