/** Parses untrusted manifests of registries. Pure. Source: OCI image-spec 1.1, Docker image manifest v2 schema 2. */
import * as v from 'valibot';
import { digestOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { isObject, isTexts, parseText, shallowJson } from '../../core/json.ts';
import { checked, digest, fits, size } from '../../core/schema.ts';
import { archName } from '../../core/ref.ts';
import type { Descriptor } from './image.ts';

export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json';
export const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
export const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
export const DOCKER_CONFIG = 'application/vnd.docker.container.image.v1+json';
/** The type of configs that docker pushed until 2016, and Docker Hub still serves. */
export const UNTYPED_CONFIG = 'application/octet-stream';
export const DOCKER_LAYER = 'application/vnd.docker.image.rootfs.diff.tar';
export const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar';
/** Docker's type of layers with zstd, which containerd reads from 2.0 on; it reads that of OCI from 1.5 on. */
export const DOCKER_ZSTD = `${DOCKER_LAYER}.zstd`;

/** Value of the Accept header: every supported kind of manifest. */
export const MANIFEST_TYPES: readonly string[] = [OCI_INDEX, DOCKER_LIST, OCI_MANIFEST, DOCKER_MANIFEST];

/** Size limit of manifests, which the distribution spec requires registries to support. */
export const MANIFEST_LIMIT = 4 * 1024 * 1024;
export const CONFIG_LIMIT = 8 * 1024 * 1024;
const MAX_LAYERS = 1000;
const MAX_MANIFESTS = 1000;

const SCHEMA_1 = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/;
const LAYER =
  /^application\/vnd\.(?:oci\.image\.layer\.(?:nondistributable\.)?v1\.tar(?:\+gzip|\+zstd)?|docker\.image\.rootfs\.(?:foreign\.)?diff\.tar(?:\.gzip|\.zstd)?)$/;
/** Addresses of one layer outside the registry, in the order of the manifest; more are ignored. */
const MAX_URLS = 5;

export interface IndexEntry {
  readonly descriptor: Descriptor;
  readonly platform: { readonly os: string; readonly arch: string; readonly variant: string | undefined } | undefined;
}

type ParsedManifest =
  | {
      readonly kind: 'image';
      readonly mediaType: string;
      readonly config: Descriptor;
      readonly layers: readonly Descriptor[];
    }
  | { readonly kind: 'index'; readonly mediaType: string; readonly manifests: readonly IndexEntry[] };

type Fields = Readonly<Record<string, unknown>>;

/** Parses JSON from outside as an object. `from` begins the message of `IMAGE_INVALID`. */
export function parseOciObject(data: Uint8Array, from: string): Fields {
  const bad = errorAbout('IMAGE_INVALID', from);
  if (data[0] === 0xef && data[1] === 0xbb && data[2] === 0xbf) {
    throw bad('it begins with a byte order mark, which container runtimes do not read');
  }
  const value = parseText(data, (json) => shallowJson(new TextDecoder('utf-8', { fatal: true }).decode(json)), bad);
  if (isObject(value)) return value;
  throw bad('not a JSON object');
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 120);
}

const descriptor = v.object({
  mediaType: v.pipe(v.string(), v.regex(/^[\w.+/-]{1,255}$/, 'not a media type')),
  digest,
  size,
});

/** A descriptor from outside: media type, sha256 digest, size; other fields are ignored. */
function parseDescriptor(value: unknown, from: string): Descriptor {
  const { mediaType, digest: blob, size: bytes } = checked(descriptor, value, errorAbout('IMAGE_INVALID', from));
  return { mediaType, digest: blob, size: bytes };
}

function parseLayer(value: unknown, from: string): Descriptor {
  const layer = parseDescriptor(value, from);
  if (!LAYER.test(layer.mediaType)) {
    throw new CurlewError('UNSUPPORTED', `${from}: ${shown(layer.mediaType)} is not a container image layer`);
  }
  const urls = isObject(value) ? value['urls'] : undefined;
  return isTexts(urls) && urls.length > 0 ? { ...layer, urls: urls.slice(0, MAX_URLS) } : layer;
}

const platformEntry = v.object({
  platform: v.object({ os: v.string(), architecture: v.string(), variant: v.optional(v.unknown()) }),
});

function platformOf(os: string, architecture: string): { readonly os: string; readonly arch: string } {
  return { os: os.toLowerCase(), arch: archName(architecture) };
}

function parseIndexEntry(value: unknown, from: string): IndexEntry {
  const entry = { descriptor: parseDescriptor(value, from), platform: undefined };
  if (!fits(platformEntry, value)) return entry;
  const { os, architecture, variant } = value.platform;
  const named = typeof variant === 'string' && variant !== '' ? variant : undefined;
  if (os === '' && architecture === '') return entry;
  return { ...entry, platform: { ...platformOf(os, architecture), variant: named } };
}

function list(value: unknown, most: number, from: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new CurlewError('IMAGE_INVALID', `${from}: not a list`);
  if (value.length > most)
    throw new CurlewError('IMAGE_INVALID', `${from}: ${value.length} entries, more than ${most}`);
  return value;
}

const EMPTY = digestOf('');

/** A digest identifies one blob: of two different sizes, one must be wrong. */
function checkSizes(descriptors: readonly Descriptor[], from: string): void {
  const sizes = new Map<Digest, number>();
  for (const { digest, size } of descriptors) {
    if ((sizes.get(digest) ?? size) !== size) {
      throw new CurlewError('IMAGE_INVALID', `${from}: two sizes for ${digest}`);
    }
    if ((size === 0) !== (digest === EMPTY)) {
      throw new CurlewError('IMAGE_INVALID', `${from}: ${digest} cannot have a size of ${size}`, {
        hint: 'push the image again with a current tool, or use another image',
      });
    }
    sizes.set(digest, size);
  }
}

/**
 * Parses a manifest or an index. The body's `mediaType` takes precedence over that of the response; if both are known types,
 * they must match. Throws `IMAGE_INVALID` for malformed manifests, `UNSUPPORTED` for schema 1 and artifacts that are not
 * container images.
 */
export function parseImageManifest(data: Uint8Array, responseType: string | undefined, from: string): ParsedManifest {
  const fields = parseOciObject(data, from);
  const announced = responseType?.split(';', 1)[0]?.trim().toLowerCase();
  const { mediaType, schemaVersion } = fields;
  if (schemaVersion === 1 || SCHEMA_1.test(String(mediaType)) || SCHEMA_1.test(announced ?? '')) {
    throw new CurlewError('UNSUPPORTED', `${from}: it is a schema 1 manifest`, {
      hint: 'push the image again with a current tool; schema 1 was retired in 2017',
    });
  }
  if (schemaVersion !== 2) throw new CurlewError('IMAGE_INVALID', `${from}: schema version ${shown(schemaVersion)}`);
  // A body that is valid as both is an attack (GHSA-mc8v-mgrf-8f4m).
  const isIndex = fields['manifests'] !== undefined;
  if (isIndex === (fields['layers'] !== undefined || fields['config'] !== undefined)) {
    throw new CurlewError('IMAGE_INVALID', `${from}: it is neither a manifest nor an index`);
  }
  const byShape = isIndex ? OCI_INDEX : OCI_MANIFEST;
  const known = MANIFEST_TYPES.find((type) => type === announced);
  const type = typeof mediaType === 'string' ? mediaType : (known ?? byShape);
  const fits = isIndex ? [OCI_INDEX, DOCKER_LIST] : [OCI_MANIFEST, DOCKER_MANIFEST];
  if (!fits.includes(type) || (known !== undefined && known !== type)) {
    throw new CurlewError('IMAGE_INVALID', `${from}: media type ${shown(type)}, announced as ${shown(announced)}`);
  }
  if (isIndex) {
    const manifests = list(fields['manifests'], MAX_MANIFESTS, `${from}: manifests`).map((entry, index) =>
      parseIndexEntry(entry, `${from}: manifest ${index + 1}`),
    );
    return { kind: 'index', mediaType: type, manifests };
  }
  const config = parseDescriptor(fields['config'], `${from}: config`);
  const isUntyped = type === DOCKER_MANIFEST && config.mediaType === UNTYPED_CONFIG;
  if (config.mediaType !== OCI_CONFIG && config.mediaType !== DOCKER_CONFIG && !isUntyped) {
    throw new CurlewError('UNSUPPORTED', `${from}: ${shown(config.mediaType)} is not a container image`);
  }
  if (config.size > CONFIG_LIMIT) {
    throw new CurlewError('IMAGE_INVALID', `${from}: the config has ${config.size} bytes, more than ${CONFIG_LIMIT}`);
  }
  const layers = list(fields['layers'], MAX_LAYERS, `${from}: layers`).map((layer, index) =>
    parseLayer(layer, `${from}: layer ${index + 1}`),
  );
  checkSizes([config, ...layers], from);
  return { kind: 'image', mediaType: type, config, layers };
}

export interface ImageConfig {
  /** Empty if the config names none, like `arch`. */
  readonly os: string;
  readonly arch: string;
  /** Digests of the unpacked layers, lowest first. */
  readonly diffIds: readonly Digest[];
}

/** Parses an image's config: platform and layers, as many as in the manifest. */
export function parseConfig(data: Uint8Array, layers: number | undefined, from: string): ImageConfig {
  const { os, architecture, rootfs } = parseOciObject(data, from);
  const bad = errorAbout('IMAGE_INVALID', from);
  const [system, arch] = [os ?? '', architecture ?? ''];
  if (typeof system !== 'string' || typeof arch !== 'string') throw bad('its platform is not a text');
  const ids = isObject(rootfs) ? list(rootfs['diff_ids'], MAX_LAYERS, `${from}: diff_ids`) : [];
  const diffIds = ids.filter(isDigest);
  if (diffIds.length !== ids.length) throw bad('some diff_ids are not sha256 digests');
  if (layers !== undefined && diffIds.length !== layers) throw bad(`${diffIds.length} diff_ids for ${layers} layers`);
  return { ...platformOf(system, arch), diffIds };
}
