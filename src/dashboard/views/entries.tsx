/** Entries of the audit log in words, with what each changed. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { Badge, Time } from "../parts/basics.tsx"
import { Changes } from "./changes.tsx"

const { audit: own } = texts

type Entry = Response<"GET /v1/projects/:projectId/audit">["entries"][number]

export const Entries = ({ entries }: { readonly entries: ReadonlyArray<Entry> }) => (
  <ul class="timeline">
    {entries.map((entry) => {
      const { action, actor, address, at, env, id, target } = entry
      return (
        <li key={id}>
          <div class="row">
            <Badge>{action}</Badge>
            <strong>{actor.name}</strong>
            <span class="soft">{own.actors[actor.kind]}</span>
            <span class="grow" />
            {env !== null && <Badge kind={env === "production" ? "red" : ""}>{env}</Badge>}
            <Time at={at} />
          </div>
          <p class="small soft">
            {target.kind} <code>{target.id}</code>
            {address !== null && (
              <>
                {" "}
                {own.from} {address}
              </>
            )}
          </p>
          <Changes entry={entry} />
        </li>
      )
    })}
  </ul>
)
