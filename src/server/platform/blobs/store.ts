/**
 * Blob store: immutable bytes under keys. The first segment of a key is the environment, so that a deleted
 * project is purged by prefix. A reader gets a local file, which is whole or absent.
 */
import { Context, Data, Effect, type Scope } from "effect"

/** Error of a store that is unreachable, or whose disk is full. */
export class BlobStoreError extends Data.TaggedError("BlobStoreError")<{
  readonly operation: string
  readonly cause: unknown
}> {
  override readonly message = `Failed to ${this.operation}: ${String(this.cause)}`
}

/** Runs a step on files; `operation` completes "Failed to". */
export const attempt = <A>(operation: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => new BlobStoreError({ operation, cause }) })

/** Error for a key without bytes in the store. */
export class BlobNotFound extends Data.TaggedError("BlobNotFound")<{ readonly key: string }> {}

export class BlobStore extends Context.Service<
  BlobStore,
  {
    /** Path of a file to write. The scope removes the file if it still exists. */
    readonly temporaryFile: Effect.Effect<string, BlobStoreError, Scope.Scope>
    /** Stores a file under a key and takes the file. The bytes survive a crash of the machine. */
    readonly put: (key: string, file: string) => Effect.Effect<void, BlobStoreError>
    /** Stores a file that is read rarely: it takes no room in a cache. */
    readonly archive: (key: string, file: string) => Effect.Effect<void, BlobStoreError>
    /** Path of a local file with the bytes of a blob that is read rarely, until the scope closes. */
    readonly fetchArchived: (
      key: string
    ) => Effect.Effect<string, BlobNotFound | BlobStoreError, Scope.Scope>
    /**
     * Returns the path of a local file with the bytes. The store may remove it later; open it at
     * once.
     */
    readonly fetch: (key: string) => Effect.Effect<string, BlobNotFound | BlobStoreError>
    /** Drops a damaged local copy; false if there are no other bytes under the key. */
    readonly dropCopy: (key: string) => Effect.Effect<boolean, BlobStoreError>
    /** Removes bytes; ignores keys without any. */
    readonly remove: (keys: ReadonlyArray<string>) => Effect.Effect<void, BlobStoreError>
    /** Removes everything of an environment. */
    readonly removeAll: (environmentId: string) => Effect.Effect<void, BlobStoreError>
  }
>()("server/platform/blobs/store/BlobStore") {}
