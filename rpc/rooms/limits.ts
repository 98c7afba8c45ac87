/** Limits of rooms: messages, state and life cycle. */
import { KiB, secondsPerHour, secondsPerDay } from "../units.ts"

export const roomLimits = {
  typeMaxCharacters: 64,
  sendDataMaxBytes: 16 * KiB,
  sendTargetsMax: 64,
  signalDataMaxBytes: 8 * KiB,
  metadataMaxBytes: 4 * KiB,
  stateMaxBytes: 64 * KiB,
  playerStateMaxBytes: 16 * KiB,
  stateKeysMax: 256,
  stateKeyMaxCharacters: 64,
  /** Delay of `player_disconnected` when a newer socket replaces one. */
  replacedQuietSeconds: 1,
  hostGraceSeconds: 5,
  /** Time for which a kicked player cannot join the room again. */
  kickBarSeconds: 60,
  /** Removed players whom a room remembers. Beyond it, it forgets the bar that ends first. */
  barsMax: 256,
  /** Muted players whom a room remembers. Beyond it, it forgets the first who is not in the room. */
  mutesMax: 256,
  /** Rests after votes that a room remembers. Beyond it, it forgets the one that ends first. */
  voteRestsMax: 128,
  /** Characters of the key that says why a player was moderated. */
  moderationReasonMaxCharacters: 48,
  /** Time for which matchmaking reserves a seat until its player joins. */
  joinDeadlineSeconds: 10,
  idleSeconds: 2 * secondsPerHour,
  lifetimeSeconds: secondsPerDay,
  codeCharacters: 6
} as const
