/** `svc share stats` and `svc share link`: counts of share links, and labelled links. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"

import { LabelledLink, ShareStats } from "#rpc/share/api"
import { environmentFlag } from "./files.ts"
import { printResult, styled, table } from "./output.ts"
import { call } from "./service.ts"
import { resolveTarget } from "./checked-target.ts"

const out = styled("stdout")

const dayFlag = (name: string, description: string) =>
  Flag.optional(Flag.String(name).pipe(Flag.withDescription(description)))

/** The links with the max visits, a bar for each day with visits, and the sums. */
const textOf = ({ days, from, links, to, totals }: ShareStats): ReadonlyArray<string> => {
  const max = Math.max(1, ...days.map(({ visits }) => visits))
  const bars = days.flatMap(({ date, visits }) =>
    visits === 0 ? [] : [`${date}  ${"█".repeat(Math.ceil((visits / max) * barCells))} ${visits}`]
  )
  const rows = links.map((link) => [
    link.label ?? link.kind,
    link.id,
    ...[link.visits, link.newPlayers, link.plays].map(String)
  ])
  return [
    `${from} to ${to}: visits ${totals.visits}, new players ${totals.newPlayers}, ` +
      `plays ${totals.plays}`,
    ...(bars.length === 0 ? [] : ["", ...bars.map((bar) => out("cyan", bar))]),
    ...(rows.length === 0 ? [] : ["", ...table(columns, rows)])
  ]
}

const barCells = 40
const columns = ["LINK", "ID", "VISITS", "NEW PLAYERS", "PLAYS"]

const statsCommand = Command.make(
  "stats",
  {
    env: environmentFlag,
    from: dayFlag("from", "First day in UTC, like 2026-11-20 (default: 30 days up to the last)"),
    to: dayFlag("to", "Last day in UTC (default: today)"),
    link: Flag.optional(Flag.String("link").pipe(Flag.withDescription("Only the link of this id")))
  },
  Effect.fn(function* ({ env, from, link, to }) {
    const target = yield* resolveTarget(env)
    const query = {
      from: Option.getOrUndefined(from),
      to: Option.getOrUndefined(to),
      shareId: Option.getOrUndefined(link)
    }
    const stats = yield* call(target, "GET /v1/admin/share/stats", ShareStats, { query })
    yield* printResult(stats, textOf(stats))
  })
).pipe(Command.withDescription("Count visits, new players and plays of share links"))

const linkCommand = Command.make(
  "link",
  {
    env: environmentFlag,
    label: Argument.String("label").pipe(
      Argument.withDescription("A name by which the counts list it, like spring-sale")
    )
  },
  Effect.fn(function* ({ env, label }) {
    const target = yield* resolveTarget(env)
    const route = "POST /v1/admin/share/links"
    const made = yield* call(target, route, LabelledLink, { body: { label } })
    yield* printResult(made, [made.url])
  })
).pipe(Command.withDescription("Make a labelled share link and print its address"))

/** `svc share`. */
export const shareCommand = Command.make("share").pipe(
  Command.withDescription("Share links: counts, and links of your own"),
  Command.withSubcommands([statsCommand, linkCommand])
)
