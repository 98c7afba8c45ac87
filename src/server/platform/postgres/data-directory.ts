/** Creates the data directory, step by step: a recursive creation never ends where a step cannot exist. */
import { Effect, FileSystem, Path, type PlatformError } from "effect"

/** Others can enter it, as Postgres and functions have to, which may have users of their own, but not list it. */
const enterableMode = 0o711

/** Creates a directory and those around it. */
export const makeDataDirectory = (
  directory: string
): Effect.Effect<void, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const full = path.resolve(directory)
    if (yield* fs.exists(full)) return
    yield* makeDataDirectory(path.dirname(full))
    // Another process may create it at the same time.
    const make = Effect.andThen(fs.makeDirectory(full), fs.chmod(full, enterableMode))
    yield* Effect.catch(make, (error) =>
      Effect.flatMap(fs.exists(full), (exists) => (exists ? Effect.void : Effect.fail(error)))
    )
  })
