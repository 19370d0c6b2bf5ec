/** The read side of the distribution API over images in memory, with logins and faults. */
import type { Blob, Image, Index } from './images.ts';
import { ranged, startServer, type Asked, type Reply, type ServerOptions, type WebServer } from './web-server.ts';

export type RegistryAuth =
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | {
      readonly kind: 'bearer';
      /** Address of the token service; `/token` of the registry itself when left out. */
      readonly realm?: string;
      readonly token: string;
      /** What the registry's own token service wants; anonymous requests get a token when left out. */
      readonly login?: { readonly username: string; readonly password: string };
      /** Identity token that the registry's own token service takes by POST. */
      readonly refreshToken?: string;
      readonly expiresIn?: number;
    };

export interface RegistryServerOptions extends ServerOptions {
  readonly auth?: RegistryAuth;
  /** Makes the image for a `repository:tag` that is not among those given. */
  readonly otherwise?: (name: string) => Image;
}

export interface RegistryServer extends WebServer {
  /** Requests for layers and configs. */
  readonly blobRequests: () => readonly Asked[];
}

interface Content {
  readonly blobs: Map<string, Blob>;
  readonly manifests: Map<string, { readonly data: Uint8Array; readonly type: string; readonly digest: string }>;
}

function add(content: Content, repository: string, names: readonly string[], image: Image | Index): void {
  const { digest, data } = image.manifest;
  for (const name of [...names, digest]) {
    content.manifests.set(`${repository}/manifests/${name}`, { data, type: image.manifestType, digest });
  }
  if ('images' in image) {
    for (const inner of image.images) add(content, repository, [], inner);
    return;
  }
  for (const blob of [image.config, ...image.layers]) content.blobs.set(`${repository}/blobs/${blob.digest}`, blob);
}

export function basicHeader(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function tokenReply(auth: Extract<RegistryAuth, { kind: 'bearer' }>, asked: Asked): Reply {
  const { token, login, refreshToken, expiresIn } = auth;
  const form = new URLSearchParams(asked.body);
  const allowed =
    refreshToken === undefined
      ? login === undefined || asked.headers['authorization'] === basicHeader(login.username, login.password)
      : form.get('refresh_token') === refreshToken && asked.method === 'POST';
  if (!allowed) return { status: 401, body: JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: 'no' }] }) };
  return {
    status: 200,
    body: JSON.stringify({ token, ...(expiresIn === undefined ? {} : { expires_in: expiresIn }) }),
  };
}

function refusal(auth: RegistryAuth, asked: Asked): Reply | undefined {
  const body = JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: 'authentication required' }] });
  if (auth.kind === 'basic') {
    if (asked.headers['authorization'] === basicHeader(auth.username, auth.password)) return undefined;
    return { status: 401, headers: { 'www-authenticate': 'Basic realm="test"' }, body };
  }
  if (asked.headers['authorization'] === `Bearer ${auth.token}`) return undefined;
  const realm = auth.realm ?? `http://${String(asked.headers['host'])}/token`;
  const challenge = `Bearer realm="${realm}",service="test",scope="repository:all:pull,push"`;
  return { status: 401, headers: { 'www-authenticate': challenge }, body };
}

/** Starts a registry with these images by `repository:tag`. */
export async function startRegistry(
  images: Readonly<Record<string, Image | Index>>,
  options: RegistryServerOptions = {},
): Promise<RegistryServer> {
  const content: Content = { blobs: new Map(), manifests: new Map() };
  for (const [name, image] of Object.entries(images)) {
    const colon = name.lastIndexOf(':');
    add(content, name.slice(0, colon), [name.slice(colon + 1)], image);
  }
  const { auth, otherwise } = options;
  const server = await startServer((asked) => {
    if (auth?.kind === 'bearer' && asked.path.startsWith('/token')) return tokenReply(auth, asked);
    const refused = auth === undefined ? undefined : refusal(auth, asked);
    if (refused !== undefined) return refused;
    if (asked.path === '/v2/') return { status: 200, body: '{}' };
    const key = asked.path.replace(/^\/v2\//, '');
    const [, repository, tag] = /^(.+)\/manifests\/([^:]+)$/.exec(key) ?? [];
    if (otherwise !== undefined && repository !== undefined && tag !== undefined && !content.manifests.has(key)) {
      add(content, repository, [tag], otherwise(`${repository}:${tag}`));
    }
    const manifest = content.manifests.get(key);
    if (manifest !== undefined) {
      const headers = { 'content-type': manifest.type, 'docker-content-digest': manifest.digest };
      return { status: 200, headers, body: manifest.data };
    }
    const blob = content.blobs.get(key);
    if (blob === undefined) {
      return { status: 404, body: JSON.stringify({ errors: [{ code: 'UNKNOWN', message: 'not here' }] }) };
    }
    return ranged(asked, { status: 200, headers: { etag: `"${blob.digest}"` }, body: blob.data });
  }, options);
  return { ...server, blobRequests: () => server.log.filter(({ path }) => path.includes('/blobs/')) };
}
