/** Limits of the environment config document. */
import { KiB, MiB } from "../units.ts"

export const configLimits = {
  keyMaxCharacters: 48,
  textMaxCharacters: 120,
  statsMax: 128,
  modesMax: 16,
  teamsMax: 16,
  votesMax: 4,
  voteShareMin: 0.5,
  voteShareDefault: 0.6,
  /** One voter alone would decide. */
  voteVotersMin: 2,
  voteSecondsMin: 10,
  voteSecondsMax: 120,
  voteCooldownSecondsMax: 3600,
  /** Seats of a room. */
  playersMax: 64,
  /** Time for which the seat of a player who has dropped out is kept. */
  graceSecondsDefault: 30,
  graceSecondsMax: 300,
  redirectUrlsMax: 32,
  allowedOriginsMax: 32,
  hashtagsMax: 5,
  integrityRulesMax: 128,
  cardTitleMaxCharacters: 60,
  linksTextMaxCharacters: 200,
  fillTimeoutSecondsMax: 300,
  p2pPlayersMin: 2,
  p2pPlayersMax: 8,
  submitsPerMinuteMax: 600,
  submitsPerMinuteDefault: 60,
  webhookTimeoutMillisMin: 100,
  webhookTimeoutMillisMax: 5000,
  webhookTimeoutMillisDefault: 1500,
  documentMaxBytes: 256 * KiB,
  /** A pushed document with its white space and escapes. */
  bodyMaxBytes: 1.5 * MiB,
  documentDepthMax: 32,
  /** Problems that the refusal of a document lists. */
  issuesMax: 100
} as const
