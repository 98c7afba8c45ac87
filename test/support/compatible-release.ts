/**
 * The commit of the release beside which this one must run during a rolling upgrade. The long chaos test
 * starts it from the history of the repository. A release replaces this line with its own commit.
 */
export const compatibleRelease = "bfc9a9c989dfd4c7f5acadb00bca167ea72bb6e0"
