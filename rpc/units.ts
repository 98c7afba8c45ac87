/** Units of sizes in bytes, and of times in seconds. */
export const KiB = 1024
export const MiB = 1024 * KiB
export const GiB = 1024 * MiB
export const secondsPerHour = 3600
export const secondsPerDay = 24 * secondsPerHour
