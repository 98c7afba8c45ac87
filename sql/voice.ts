/** The operator's switch that suspends voice in an environment. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName } from "#rpc/auth"
import { ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Switch = Schema.Struct({ environmentId: Schema.String, suspended: Schema.Boolean })

const Environment = Schema.Struct({ projectId: ProjectId, name: EnvironmentName })

/** Repository of `environments.voice_suspended_at`. */
export class VoiceRepository extends Context.Service<VoiceRepository>()(
  "sql/voice/VoiceRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const setSuspended = SqlSchema.findOneOption({
        Request: Switch,
        Result: Environment,
        execute: ({ environmentId, suspended }) => sql`
          update environments set voice_suspended_at = case when ${suspended} then now() end
          where id = ${environmentId}
          returning project_id, name`
      })
      return {
        /** Suspends or resumes voice; returns the environment, none if it does not exist. */
        setSuspended: (request: typeof Switch.Type) => orDieWithTimeout(setSuspended(request))
      }
    })
  }
) {
  static readonly layer = Layer.effect(VoiceRepository, this.make)
}
