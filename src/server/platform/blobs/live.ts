/** The blob store of the settings. */
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { Settings } from "../settings/settings.ts"
import { folderStore } from "./folder.ts"
import { BlobStore } from "./store.ts"

export const BlobStoreLive = Layer.effect(
  BlobStore,
  Effect.gen(function* () {
    const { dataDir } = yield* Settings
    return yield* folderStore(join(dataDir, "blobs"))
  })
)
