/** Channels and the manifests that they name: at paths, `file:` and `https:` URLs, and in S3. */
import { posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cancellable } from '../../core/cancellable.ts';
import { entryTitle, entryFile, type Channel, type Entry } from '../../cluster/channel/channel.ts';
import type { ReadManifest } from '../../cluster/channel/check-manifests.ts';
import {
  hashOfManifest,
  isRemote,
  isUrl,
  reachesLocalFile,
  reachesOtherBucket,
} from '../../cluster/channel/location.ts';
import { MAX_MANIFEST_BYTES } from '../../cluster/channel/objects.ts';
import { readChannel, type ReadChannel } from '../../cluster/channel/read.ts';
import { counted } from '../../core/counted.ts';
import { asError, CurlewError, redact, requireRefusal } from '../../core/errors.ts';
import { readFound } from '../../platform/files/state-file.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { Store } from '../../ship/store/store.ts';
import { isWebAddress } from '../../ship/store/web.ts';
import type { Context } from '../../core/context.ts';
import { lazyHttp } from './network.ts';
import { openStoreFor } from './stores.ts';
import type { AddressRequest } from '../../requests/connection.ts';
import type { ChannelsRequest } from '../../requests/channel.ts';

const AT_ONCE = 8;

export interface OpenedChannel extends ReadChannel {
  /** Without secrets: for messages. */
  readonly location: string;
  /** Empty if the channel cannot be read. */
  readonly text: string;
  /** Why `channel` is undefined. */
  readonly error: CurlewError | undefined;
}

export interface ChannelFiles extends AsyncDisposable {
  /** Channels in the given order. A failed one does not affect the others. */
  readonly channels: readonly OpenedChannel[];
  /** Reads the files of a channel. A file of this machine, or of another bucket, that a channel from another machine names is `UNSUPPORTED`. */
  readonly reader: (channel: Channel) => ReadManifest;
  /**
   * The manifest of an entry, or the archive of its chart; it must have one of them. `NOT_FOUND` if it does not exist, `DIGEST_MISMATCH` if the entry has another
   * hash. A manifest of an entry without hash is not checked.
   */
  readonly readManifest: (channel: Channel, entry: Entry, options: Cancellable) => Promise<Uint8Array>;
}

/**
 * Reads channels, and keeps the connections for their manifests. The caller disposes the result. The limit of a manifest is that
 * of a channel, too, whose first document is limited further when it is read.
 */
export async function openChannels(request: ChannelsRequest, context: Context): Promise<ChannelFiles> {
  const files = openFiles(request, context);
  const contents = new Map<string, Uint8Array>();
  const open = async (location: string, signal: AbortSignal): Promise<OpenedChannel> => {
    const shown = redact(location);
    try {
      const content = await files.read(location, { isGiven: true, signal });
      if (content === undefined) throw missing(shown);
      contents.set(location, content);
      const text = Buffer.from(content).toString('utf8');
      const { channel, diagnostics } = readChannel(location, text, request.compat);
      const error = channel === undefined ? invalid(shown, diagnostics) : undefined;
      return { location: shown, text, channel, diagnostics, error };
    } catch (error) {
      requireRefusal(error, signal);
      return { location: shown, text: '', channel: undefined, diagnostics: [], error };
    }
  };
  const reader =
    (channel: Channel): ReadManifest =>
    async (location, { signal }) => {
      if (reachesLocalFile(channel.location, location)) {
        throw new CurlewError('UNSUPPORTED', `cannot read ${location}: its channel is not on this machine`);
      }
      if (reachesOtherBucket(channel.location, location)) {
        throw new CurlewError('UNSUPPORTED', `cannot read ${location}: its channel is not in this bucket`, {
          hint: 'only a channel on this machine can name objects of any bucket, which are read with your credentials',
        });
      }
      // The only add-on of a plain manifest is the manifest, which may come from a pipe.
      return (
        (location === channel.location ? contents.get(location) : undefined) ??
        (await files.read(location, { namedBy: channel.location, signal }))
      );
    };
  try {
    const channels = await mapLimited(
      [...new Set(request.channels)],
      async (location, { signal }) => open(location, signal),
      { width: AT_ONCE, signal: context.signal },
    );
    return {
      channels,
      reader,
      readManifest: async (channel, entry, options) =>
        readChecked(channel, entry, { read: reader(channel), ...options }),
      [Symbol.asyncDispose]: files.close,
    };
  } catch (error) {
    await files.close();
    throw error;
  }
}

function missing(location: string): CurlewError {
  return new CurlewError('NOT_FOUND', `cannot read ${location}: it does not exist`, { hint: 'check the spelling' });
}

function invalid(location: string, diagnostics: ReadChannel['diagnostics']): CurlewError {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const [first] = errors;
  const what = errors.length === 1 && first !== undefined ? first.message : counted(errors.length, 'error');
  return new CurlewError('MANIFEST_INVALID', `cannot use ${location}: ${what}`, {
    hint: `curlew channel check ${location} shows the lines`,
    diagnostics: errors,
  });
}

async function readChecked(
  channel: Channel,
  entry: Entry,
  { read, signal }: { readonly read: ReadManifest; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const { hash } = entry;
  const title = entryTitle(entry);
  const location = entryFile(entry);
  if (location === undefined) throw new CurlewError('UNSUPPORTED', `cannot read ${title}: it has no file`);
  const content = await read(location, { signal });
  if (content === undefined) throw missing(`the ${entry.source?.type ?? 'file'} of ${title}, ${location}`);
  const actual = hashOfManifest(content, { kind: channel.kind, hash });
  if (hash === '' || actual === hash) return content;
  throw new CurlewError('DIGEST_MISMATCH', `cannot use ${location}: its hash is ${actual}, not ${hash} of ${title}`, {
    hint: 'publish the file again, or correct the hash in the channel',
  });
}

interface FileOptions extends Cancellable {
  /** The operator has named the file, which may also be a pipe. */
  readonly isGiven?: boolean;
  /** The channel that has named the file: its server must not name internal addresses. */
  readonly namedBy?: string;
}

interface Files {
  /** Undefined if the file does not exist. */
  readonly read: (location: string, options: FileOptions) => Promise<Uint8Array | undefined>;
  readonly close: () => Promise<void>;
}

function openFiles(request: AddressRequest, context: Context): Files {
  const web = lazyHttp(request, context);
  const stores = new Map<string, Promise<Store>>();
  const fromWeb = async (url: string, { namedBy = '', signal }: FileOptions): Promise<Uint8Array | undefined> => {
    const http = await web.get();
    const asked = { doing: `read ${redact(url)}`, url, via: isRemote(namedBy) ? namedBy : undefined };
    const response = await http.small(asked, { limit: MAX_MANIFEST_BYTES, signal });
    if (response.status === 404 || response.status === 410) return undefined;
    if (response.status !== 200) throw http.failure(asked, response, response.body);
    return response.body;
  };
  const fromS3 = async (location: string, { signal }: FileOptions): Promise<Uint8Array | undefined> => {
    const object = objectOf(location);
    const folder = posix.dirname(object);
    const store = stores.get(folder) ?? openStoreFor(folder, request, context, { create: false });
    stores.set(folder, store);
    return (await (await store).read(posix.basename(object), { limit: MAX_MANIFEST_BYTES, signal }))?.data;
  };
  const fromDisk = async (path: string, { isGiven = false, signal }: FileOptions): Promise<Uint8Array | undefined> => {
    const whole = resolve(context.cwd, path);
    return isGiven ? readLimited(whole, MAX_MANIFEST_BYTES, { signal }) : readFound(whole, MAX_MANIFEST_BYTES);
  };
  return {
    read: async (location, options) => {
      options.signal.throwIfAborted();
      if (!isUrl(location)) return fromDisk(location, options);
      if (/^file:/i.test(location)) return fromDisk(pathOf(location), options);
      if (/^s3:\/\//i.test(location)) return fromS3(location, options);
      if (isWebAddress(location)) return fromWeb(location, options);
      const hint = 'use a path, file:, https:// or s3://bucket/key; a path with a colon begins with ./';
      throw new CurlewError('UNSUPPORTED', `cannot read ${location}: unknown kind of address`, { hint });
    },
    close: web.close,
  };
}

function pathOf(location: string): string {
  try {
    return fileURLToPath(location);
  } catch (error) {
    throw new CurlewError('USAGE', `cannot read ${location}: ${asError(error).message}`, {
      hint: 'write it as file:///path',
    });
  }
}

/** `s3://bucket/key`, in which a URL has special characters of the key as %XX. */
function objectOf(location: string): string {
  try {
    const object = decodeURIComponent(location);
    if (/^s3:\/\/[^/]+\/./i.test(object) && !object.endsWith('/')) return object;
  } catch {
    // Not a URL: reported below.
  }
  throw new CurlewError('USAGE', `cannot read ${location}: not the address of an object in S3`, {
    hint: 'write it as s3://bucket/key',
  });
}
