/** Versions of a deployment, with the rollback to each. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { texts } from "../core/texts.ts"
import { Confirm } from "./dialog.tsx"
import { ActionsHead } from "./load-states.tsx"
import { Badge, bytes, count, Time } from "./basics.tsx"

const { versions: own } = texts

/** A version as the table shows it. */
export interface Version {
  readonly version: number
  readonly live: boolean
  readonly message: string | null
  readonly createdAt: string
  /** Number of its files or modules, and their bytes. */
  readonly count: number
  readonly bytes: number
  /** Whether it can become the live one. */
  readonly ready: boolean
}

const Row = ({
  activate,
  children,
  version
}: {
  readonly version: Version
  readonly activate: () => void
  readonly children: ComponentChildren
}) => (
  <tr>
    <td>
      <strong>{version.version}</strong> {version.live && <Badge kind="green">{own.live}</Badge>}
      {!version.ready && <Badge kind="amber">{own.uploading}</Badge>}
      <div class="soft small">{version.message}</div>
    </td>
    <td>
      <Time at={version.createdAt} />
    </td>
    <td class="number minor">{count(version.count)}</td>
    <td class="number minor">{bytes(version.bytes)}</td>
    <td class="tight">
      <div class="row end">
        {children}
        {version.ready && !version.live && (
          <button
            type="button"
            class="button small"
            aria-label={own.activateTitle(version.version)}
            onClick={activate}
          >
            {own.activate}
          </button>
        )}
      </div>
    </td>
  </tr>
)

export const VersionTable = <V extends Version>({
  actions,
  activate,
  countHead,
  question,
  versions
}: {
  readonly versions: ReadonlyArray<V>
  readonly countHead: string
  /** Makes a version the live one, after the confirmation. */
  readonly activate: (version: V) => Promise<void>
  /** Consequences of the change, for the confirmation. */
  readonly question: (version: V) => ComponentChildren
  /** Further actions on a version. */
  readonly actions?: (version: V) => ComponentChildren
}) => {
  const [chosen, setChosen] = useState<V | undefined>(undefined)
  return (
    <div class="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{own.version}</th>
            <th scope="col">{texts.players.created}</th>
            <th scope="col" class="number minor">
              {countHead}
            </th>
            <th scope="col" class="number minor">
              {own.size}
            </th>
            <ActionsHead />
          </tr>
        </thead>
        <tbody>
          {versions.map((version) => (
            <Row key={version.version} version={version} activate={() => setChosen(version)}>
              {actions?.(version)}
            </Row>
          ))}
        </tbody>
      </table>
      {chosen !== undefined && (
        <Confirm
          title={own.activateTitle(chosen.version)}
          action={own.activate}
          close={() => setChosen(undefined)}
          run={() => activate(chosen)}
        >
          {question(chosen)}
        </Confirm>
      )}
    </div>
  )
}
