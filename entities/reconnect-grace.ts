/**
 * The absence of a member, and the grace that counts only time in which the player could have returned.
 * Pure; rooms and channels share it.
 *
 * - While the entity is on no runner, a grace stands still ({@link afterGap}). One that began because the
 *   service closed the connection starts afresh.
 * - While players of the environment wait for admission, a grace is held ({@link afterHold}).
 *
 * Both are bounded, counted from the drop. A leave, a kick and a ban remove the member, who has none.
 */

/** Graces of seats and memberships while players cannot return, counted from the drop. */
export const graces = {
  /** Time for which a grace stands still while players of its environment wait for admission. */
  waitingSeconds: 120,
  /** Longest absence, whatever the reasons for which the grace stood still. */
  absenceSeconds: 600,
  /** A connection that waits longer than this for its admission holds the graces of its environment. */
  admissionMillis: 1000,
  /** Interval at which a node looks for environments whose players wait, here and on other nodes. */
  lookMillis: 500,
  readMillis: 2000,
  /**
   * Time for which a hold outlasts the last wait that was seen: the longest delay of a client between two
   * attempts. Those whose attempts failed because of the others come back within it.
   */
  holdMillis: 15_000,
  /** Environments whose waiting players one node reports. Beyond it, those that wait longest. */
  reportedEnvironmentsMax: 1000
} as const

const waitingMillis = graces.waitingSeconds * 1000
const absenceMillis = graces.absenceSeconds * 1000

/** The absence of a member without a connection. Times are Unix milliseconds. */
export interface Absence {
  /** Time at which the connection ended, from which the bounds count. */
  readonly droppedAt: number
  /** Start of the grace: the drop, moved by the time in which the player could not return. */
  readonly since: number
  /** The part of the move that was spent waiting for admission. */
  readonly waitedMillis: number
  /** Whether the service closed the connection: its node drained, or is gone. */
  readonly byService: boolean
}

/** A grace: its duration, and since when it is held; null while it runs. */
export interface Grace {
  readonly millis: number
  readonly heldSince: number | null
}

/** The latest start that a grace of this duration may move to; never before the current one. */
const latestStart = ({ droppedAt, since }: Absence, graceMillis: number): number =>
  Math.max(since, droppedAt + absenceMillis - graceMillis)

const startingAt = (absence: Absence, since: number, graceMillis: number): Absence => {
  const moved = Math.max(absence.since, Math.min(since, latestStart(absence, graceMillis)))
  return moved === absence.since ? absence : { ...absence, since: moved }
}

/** Starts an absence. A connection that was last seen earlier counts from then. */
export const absent = (
  now: number,
  graceMillis: number,
  { byService, seenAt = now }: { readonly byService: boolean; readonly seenAt?: number | undefined }
): Absence => {
  const droppedAt = Math.min(seenAt, now)
  const dropped = { droppedAt, since: droppedAt, waitedMillis: 0, byService }
  return startingAt(dropped, now, graceMillis)
}

/** Whether a connection was last seen too long ago for its player to return, whatever the grace. */
export const isSeenTooLongAgo = (seenAt: number, graceMillis: number, now: number): boolean =>
  now >= seenAt + Math.max(absenceMillis, graceMillis)

/** Time for which the absence has been held until now, within the bound. */
const heldMillis = (absence: Absence, heldSince: number, now: number): number =>
  Math.min(
    Math.max(0, now - Math.max(heldSince, absence.since)),
    waitingMillis - absence.waitedMillis
  )

/** The absence after a hold that has lasted until now. */
export const afterHold = (
  absence: Absence,
  heldSince: number,
  now: number,
  graceMillis: number
): Absence => {
  const held = heldMillis(absence, heldSince, now)
  if (held === 0) return absence
  const moved = startingAt(absence, absence.since + held, graceMillis)
  return { ...moved, waitedMillis: absence.waitedMillis + held }
}

/**
 * The absence after a gap in which its entity was on no runner. A grace continues where it stood; one
 * that the service caused starts now.
 */
export const afterGap = (
  absence: Absence,
  { from, to }: { readonly from: number; readonly to: number },
  graceMillis: number
): Absence => {
  const since = absence.byService ? to : absence.since + Math.max(0, to - from)
  return startingAt(absence, since, graceMillis)
}

/** The end of the grace if it were not held from now on: what clients receive. */
export const graceEnd = (absence: Absence, { heldSince, millis }: Grace, now: number): number => {
  const { since } = heldSince === null ? absence : afterHold(absence, heldSince, now, millis)
  return since + millis
}

/** Time at which the grace ends if it is held as long as the bounds allow: a timer looks then. */
export const graceDeadline = (absence: Absence, grace: Grace): number =>
  graceEnd(absence, grace, grace.heldSince === null ? 0 : Number.MAX_SAFE_INTEGER)
