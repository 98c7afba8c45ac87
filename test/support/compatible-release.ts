/**
 * The commit of the release beside which this one must run during a rolling upgrade. The long chaos test
 * starts it from the history of the repository. A release replaces this line with its own commit.
 */
export const compatibleRelease = "176cdc472eb7a6d054aa6203cefee1ec8db98313"
