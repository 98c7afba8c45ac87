/** An S3-compatible store in this process, with one bucket. Its files are below `objects` of `folder`. */
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import S3rver from "@20minutes/s3rver"
import { Context, Effect, Layer } from "effect"

/** A bucket, which a test can take away and damage. */
export class Bucket extends Context.Service<
  Bucket,
  { readonly port: number; readonly folder: string; readonly state: { away: boolean } }
>()("test/support/bucket/Bucket") {
  static readonly layer = Layer.effect(
    Bucket,
    Effect.acquireRelease(
      Effect.promise(async () => {
        const folder = await mkdtemp(join(tmpdir(), "svc-bucket-"))
        const bucket = new S3rver({
          directory: join(folder, "objects"),
          silent: true,
          vhostBuckets: false,
          configureBuckets: [{ name: "games", configs: [] }]
        })
        await bucket.configureBuckets()
        const handle = bucket.callback()
        const state = { away: false }
        const server = createServer((request, response) => {
          if (state.away) request.destroy()
          else handle(request, response)
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        const address = server.address()
        const port = address === null || typeof address === "string" ? 0 : address.port
        return { port, server, folder, state }
      }),
      ({ folder, server }) =>
        Effect.promise(async () => {
          server.close().closeAllConnections()
          await rm(folder, { recursive: true, force: true })
        })
    )
  )
}
