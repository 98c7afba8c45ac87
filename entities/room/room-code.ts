/** The code by which players join a room. The database refuses one that its environment already has. */
import { Effect } from "effect"
import { CodeTaken, Unavailable } from "#rpc/errors/codes"
import { readableCode } from "#rpc/ids"
import { roomLimits } from "#rpc/rooms/limits"

const attemptsMax = 8

/** Draws codes until `claim` succeeds, and returns that one. A given code is tried once. */
export const claimRoomCode = Effect.fnUntraced(function* <E, R>(
  given: string | null,
  claim: (code: string) => Effect.Effect<boolean, E, R>
) {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const code = given ?? (yield* readableCode(roomLimits.codeCharacters))
    if (yield* claim(code)) return code
    if (given !== null) return yield* new CodeTaken()
  }
  return yield* new Unavailable()
})
