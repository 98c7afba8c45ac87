/**
 * Rights in the rooms of a mode: what the host may do to others, what players may vote on, and teams.
 * A mode without these sections gives nobody any right over others.
 */
import { Schema } from "effect"
import { choice, integer, list, optional, section, withDefault } from "./fields.ts"
import { configLimits } from "./limits.ts"
import { key, text } from "./text.ts"

/** What a host may be allowed to do to the other players. */
export const HostPower = Schema.Literals(["kick", "ban", "mute", "team", "transfer"])
export type HostPower = typeof HostPower.Type

/** What players may vote on. */
export const VoteOp = Schema.Literals(["kick", "restart", "surrender"])
export type VoteOp = typeof VoteOp.Type

const words = (all: ReadonlyArray<string>): string =>
  `must be one of ${all.map((word) => `"${word}"`).join(", ")}`

const powers = (description: string) =>
  list(
    description,
    HostPower.annotate({ message: words(HostPower.literals) }),
    HostPower.literals.length
  )

const shareMessage = `must be a number from ${configLimits.voteShareMin} to 1`

/** A vote that players may start. */
export const VoteRule = section("A vote that players may start.", {
  op: VoteOp.annotate({
    message: words(VoteOp.literals),
    description:
      "kick removes a player; restart and surrender only announce their result to the game."
  }),
  share: withDefault(
    Schema.Number.annotate({
      message: shareMessage,
      description: "The share of all voters who must say yes.",
      default: configLimits.voteShareDefault
    }).check(
      Schema.isFinite({ message: shareMessage }),
      Schema.isBetween(
        { minimum: configLimits.voteShareMin, maximum: 1 },
        { message: shareMessage }
      )
    ),
    configLimits.voteShareDefault
  ),
  minVoters: integer("No vote starts with fewer voters.", {
    minimum: configLimits.voteVotersMin,
    maximum: configLimits.playersMax,
    default: 3
  }),
  seconds: integer("How long a vote is open.", {
    minimum: configLimits.voteSecondsMin,
    maximum: configLimits.voteSecondsMax,
    default: 30
  }),
  cooldownSeconds: integer(
    "How long who started a vote, and after a failed one its target, has rest from the next.",
    { minimum: 0, maximum: configLimits.voteCooldownSecondsMax, default: 60 }
  )
})
export type VoteRule = typeof VoteRule.Type

/** Section `authority` of a mode. */
export const Authority = section("Who may do what to other players.", {
  host: powers("What the host of a room that a player created may do."),
  matchedHost: powers("What the host of a quick-match room may do: a stranger whom chance chose."),
  votes: list("The votes that players may start.", VoteRule, configLimits.votesMax)
})

const slotsMessage = `must be an integer from 1 to ${configLimits.playersMax}`

/** A team of a mode. */
export const TeamRule = section("A team.", {
  key: key("Names the team."),
  title: text("The team's name for people."),
  min: integer("The players that a match gives the team at least.", {
    minimum: 0,
    maximum: configLimits.playersMax,
    default: 0
  }),
  max: Schema.Number.annotate({
    message: slotsMessage,
    description: "The slots of the team."
  }).check(
    Schema.isInt({ message: slotsMessage }),
    Schema.isBetween({ minimum: 1, maximum: configLimits.playersMax }, { message: slotsMessage })
  )
})
export type TeamRule = typeof TeamRule.Type

/** The fields of a mode that give rights and teams. */
export const authorityFields = {
  authority: optional(Authority),
  teams: list(
    "The teams of a room; with none, there are no teams.",
    TeamRule,
    configLimits.teamsMax
  ),
  assign: choice(
    "Who changes a player's team: with free the player until the room is locked, with host the host.",
    ["auto", "match", "free", "host"]
  )
}
