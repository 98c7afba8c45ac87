/** Creates the data directory, step by step: a recursive creation never ends where a step cannot exist. */
import { Effect, FileSystem, Path, type PlatformError } from "effect"

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
    yield* Effect.catch(fs.makeDirectory(full), (error) =>
      Effect.flatMap(fs.exists(full), (exists) => (exists ? Effect.void : Effect.fail(error)))
    )
  })
