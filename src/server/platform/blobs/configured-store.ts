/** The blob store of the settings. */
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { Settings } from "../settings/settings.ts"
import { folderStore } from "./folder.ts"
import { s3Store } from "./s3.ts"
import { BlobStore } from "./store.ts"

export const BlobStoreLive = Layer.effect(
  BlobStore,
  Effect.gen(function* () {
    const {
      dataDir,
      hosting: { s3 }
    } = yield* Settings
    return s3 === undefined
      ? yield* folderStore(join(dataDir, "blobs"))
      : yield* s3Store(s3, join(dataDir, "blob-cache"))
  })
)
