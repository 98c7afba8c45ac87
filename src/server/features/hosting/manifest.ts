/** Rules of the file list of a deployment. */
import type { DeployedFile } from "#rpc/hosting/api"
import { InvalidRequest, type Issue } from "#rpc/errors/codes"
import { hosting } from "#rpc/hosting/limits"
import { pathIssue, reservedPaths } from "#rpc/hosting/paths"

/** The distinct contents of a deployment. */
export interface Contents {
  readonly hashes: ReadonlyArray<string>
  readonly sizes: ReadonlyArray<number>
  /** Bytes of all files. Content that several files share counts several times. */
  readonly totalBytes: number
}

const issueAt = (index: number, field: string, text: string, path: string): Issue => ({
  path: `files[${index}].${field}`,
  message: `${text} (${JSON.stringify(path.slice(0, hosting.pathMaxCharacters))})`
})

export const invalidFiles = (issues: ReadonlyArray<Issue>): InvalidRequest =>
  new InvalidRequest({ details: { issues: issues.slice(0, hosting.issuesMax) } })

/**
 * Returns the issues of the files. Refuses paths that differ only in case, since they are one file on
 * some machines.
 */
export const manifestIssues = (files: ReadonlyArray<DeployedFile>): ReadonlyArray<Issue> => {
  const issues: Array<Issue> = []
  const paths = new Set<string>()
  const sizes = new Map<string, number>()
  for (const [index, { path, sha256, size }] of files.entries()) {
    const issue = pathIssue(path)
    const folded = path.toLowerCase()
    if (issue !== undefined) issues.push(issueAt(index, "path", issue, path))
    else if (paths.has(folded)) {
      issues.push(issueAt(index, "path", "Another file has this path, apart from case", path))
    }
    if (path === reservedPaths.settings && size > hosting.settingsMaxBytes) {
      const text = `Expected at most ${hosting.settingsMaxBytes} bytes`
      issues.push(issueAt(index, "size", text, path))
    }
    if ((sizes.get(sha256) ?? size) !== size) {
      issues.push(issueAt(index, "size", "Another file with this SHA-256 has another size", path))
    }
    paths.add(folded)
    sizes.set(sha256, size)
    if (issues.length >= hosting.issuesMax) break
  }
  return issues
}

/** Returns the contents of files without issues. */
export const contentsOf = (files: ReadonlyArray<DeployedFile>): Contents => {
  const sizes = new Map(files.map(({ sha256, size }) => [sha256, size]))
  return {
    hashes: [...sizes.keys()],
    sizes: [...sizes.values()],
    totalBytes: files.reduce((sum, { size }) => sum + size, 0)
  }
}

/** Returns the issues of files whose stored content has another size than they claim. */
export const sizeIssues = (
  files: ReadonlyArray<DeployedFile>,
  stored: ReadonlyMap<string, number>
): ReadonlyArray<Issue> =>
  files.flatMap(({ path, sha256, size }, index) =>
    (stored.get(sha256) ?? size) === size
      ? []
      : [issueAt(index, "size", "The content with this SHA-256 has another size", path)]
  )
