/**
 * The commit of the release beside which this one must run during a rolling upgrade. The long chaos test
 * starts it from the history of the repository. A release replaces this line with its own commit.
 */
export const compatibleRelease = "07634c5bea7c4d01d053222c3801044911edd660"
