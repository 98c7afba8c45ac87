/** The service as a release before voice calls: its runners do not know the entity. */
import { registerHooks } from "node:module"

const source = `
  import { Layer } from "effect"
  export const VoiceSessionLive = Layer.empty
`

registerHooks({
  load: (url, context, next) =>
    url.endsWith("/entities/voice-session/entity.ts")
      ? { format: "module", source, shortCircuit: true }
      : next(url, context)
})

await import("#server/main")
