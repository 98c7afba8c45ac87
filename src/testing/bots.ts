/**
 * Bots for tests: players that follow a script, all at once. They load a game with traffic, or fill the
 * seats beside the player that a test is about.
 */
import { Data, Effect, type Scope } from "effect"
import { at, newPlayer, type OnlinePlayer, type TestTarget } from "./players.ts"

/** The service refused a frame of a bot. */
export class BotError extends Data.TaggedError("BotError")<{ readonly message: string }> {}

/** A player that follows a script. */
export interface Bot extends OnlinePlayer {
  /** Counts from 0. */
  readonly index: number
  /** Sends a frame and returns the data of its reply; fails if the service refuses it. */
  readonly ask: (frame: object) => Effect.Effect<unknown, BotError>
}

const botOf = (player: OnlinePlayer, index: number): Bot => ({
  ...player,
  index,
  ask: (frame) =>
    Effect.flatMap(player.socket.request(frame), (reply) =>
      reply["ok"] === true
        ? Effect.succeed(reply["data"])
        : Effect.fail(
            new BotError({
              message: `Bot ${index}: ${JSON.stringify(frame)} was refused: ${String(at(reply, "error", "code"))}`
            })
          )
    )
})

/**
 * Runs a script with several bots at once and returns their results. Each bot is a guest with a socket of
 * its own, which the scope closes.
 */
export const runBots = <A, E, R>(
  target: TestTarget,
  count: number,
  script: (bot: Bot) => Effect.Effect<A, E, R>
): Effect.Effect<ReadonlyArray<A>, E | Error, R | Scope.Scope> =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) =>
      Effect.flatMap(newPlayer(target, `Bot ${index}`), (player) => script(botOf(player, index))),
    { concurrency: "unbounded" }
  )
