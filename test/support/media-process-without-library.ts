/** The program of a media process on a platform that node-datachannel has no binary for. */
import { registerHooks } from "node:module"

registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier === "node-datachannel") throw new Error("No binary for this platform")
    return next(specifier, context)
  }
})

await import("#server/features/voice/media-process")
