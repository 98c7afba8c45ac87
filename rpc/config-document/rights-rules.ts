/** Rules of the rights and teams of a mode. Like `rules.ts`, they read the raw document. */
import { Option, Schema } from "effect"
import type { Issue } from "../errors/codes.ts"
import { TeamRule } from "./authority.ts"
import { configLimits } from "./limits.ts"
import { ModeFields } from "./multiplayer.ts"
import { duplicateKeys, entries, issueIf, lengthIssues, members } from "./raw.ts"

const { assign, maxPlayers, minPlayers, p2p, transport } = ModeFields.fields
const decodeSeats = Schema.decodeUnknownOption(
  Schema.Struct({ assign, maxPlayers, minPlayers, p2p, transport })
)
const { max, min } = TeamRule.fields
const decodeSlots = Schema.decodeUnknownOption(Schema.Array(Schema.Struct({ max, min })))

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

/** The slots of all teams together seat a full room, and a match of `minPlayers` fills what they need. */
const slotIssues = (mode: unknown, path: string): ReadonlyArray<Issue> => {
  const slots = Option.getOrElse(decodeSlots(entries(members(mode)["teams"])), () => [])
  const decoded = decodeSeats(mode)
  if (slots.length === 0 || Option.isNone(decoded)) return []
  const seats = decoded.value
  const cap = seats.transport === "p2p" ? seats.p2p.maxPlayers : seats.maxPlayers
  const full = Math.min(seats.maxPlayers, cap)
  const most = sum(slots.map((team) => team.max))
  const least = sum(slots.map((team) => team.min))
  const isMatch = seats.assign === "match"
  return [
    ...slots.flatMap((team, index) =>
      issueIf(team.max < team.min, `${path}.teams[${index}].max`, `must be >= min (${team.min})`)
    ),
    ...issueIf(
      isMatch ? most !== full : most < full,
      `${path}.teams`,
      `max of all teams together is ${most}: must be ${isMatch ? "" : ">= "}maxPlayers (${full})`
    ),
    ...issueIf(
      isMatch ? least > 0 && least !== seats.minPlayers : least > seats.minPlayers,
      `${path}.teams`,
      `min of all teams together is ${least}: must be ${isMatch ? "" : "<= "}minPlayers (${seats.minPlayers})`
    )
  ]
}

const duplicateVotes = (votes: unknown, path: string): ReadonlyArray<Issue> =>
  entries(votes).flatMap((entry, index) => {
    const { op } = members(entry)
    const first = entries(votes).findIndex((each) => members(each)["op"] === op)
    return issueIf(
      typeof op === "string" && first < index,
      `${path}[${index}].op`,
      `${path}[${first}] is for "${String(op)}" too: keep one of them`
    )
  })

/** Returns the issues of a mode's rights and teams. */
export const rightsIssues = (mode: unknown, path: string): ReadonlyArray<Issue> => {
  const { authority, teams } = members(mode)
  const { votes } = members(authority)
  return [
    ...lengthIssues(teams, `${path}.teams`, configLimits.teamsMax),
    ...duplicateKeys(teams, `${path}.teams`),
    ...slotIssues(mode, path),
    ...lengthIssues(votes, `${path}.authority.votes`, configLimits.votesMax),
    ...duplicateVotes(votes, `${path}.authority.votes`)
  ]
}
