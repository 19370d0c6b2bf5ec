/** Finds the images that the resources of a YAML file name. Pure. */
import { isMap, isScalar, isSeq, type Document, type YAMLMap, type YAMLSeq } from 'yaml';
import { parseImageRef } from '../../core/image-ref.ts';
import { quoted } from '../rules.ts';
import type { Remark, Spot } from './spot.ts';
import type { YamlDocument } from './yaml-text.ts';

/** An image that a file names. `sure`: by a pod, a resource or a kustomization, not by a variable. */
export interface ImageUse extends Spot {
  readonly text: string;
  readonly sure: boolean;
}

/** `images` of a kustomization: replaces the name, tag or digest of an image. */
export interface ImageRewrite extends Spot {
  readonly name: string;
  readonly newName: string | undefined;
  /** `:tag` or `@digest`. */
  readonly suffix: string | undefined;
}

export interface NamedImages {
  readonly uses: ImageUse[];
  readonly rewrites: ImageRewrite[];
  readonly remarks: Remark[];
}

const CONTAINERS: ReadonlySet<string> = new Set(['containers', 'initContainers', 'ephemeralContainers']);
/** `RELATED_IMAGE_X`, `ROOK_CSI_CEPH_IMAGE`, `proxyImage`. */
const VARIABLE = /(?:^|_)IMAGE(?:$|_)|Image$/;
const HOST = /^[^/]*[.:][^/]*\//;
/** Limit of images per file. */
const MAX_USES = 10_000;
/** Limit of visited nodes per document. */
const MAX_NODES = 200_000;

interface Walk {
  readonly images: NamedImages;
  readonly base: number;
}

/** Adds the images of a document to `images`. */
export function collectImages({ tree, base }: YamlDocument, images: NamedImages): void {
  if (documentKind(tree) === 'CustomResourceDefinition') return;
  const walk: Walk = { images, base };
  const stack: { readonly node: unknown; readonly container: boolean }[] = [{ node: tree.contents, container: false }];
  for (let count = 0; count < MAX_NODES; count += 1) {
    const next = stack.pop();
    if (next === undefined) return;
    const { node, container } = next;
    // Pushed in reverse, because a stack returns the last item first: keeps findings in file order.
    if (isSeq(node)) for (const item of node.items.toReversed()) stack.push({ node: item, container });
    if (!isMap(node)) continue;
    readMap(walk, node, container);
    for (const { key, value } of node.items.toReversed()) {
      stack.push({ node: value, container: isScalar(key) && CONTAINERS.has(String(key.value)) && isSeq(value) });
    }
  }
}

export function documentKind(tree: Document): string | undefined {
  return isMap(tree.contents) ? textUnder(tree.contents, 'kind')?.text : undefined;
}

interface Text extends Spot {
  readonly text: string;
}

/** The text under a key, without quotes. */
export function textUnder(map: YAMLMap, name: string): Text | undefined {
  const pair = map.items.find(({ key }) => isScalar(key) && key.value === name);
  return scalarText(pair?.value);
}

function scalarText(node: unknown): Text | undefined {
  if (!isScalar(node) || typeof node.value !== 'string' || !node.range) return undefined;
  return { text: node.value, from: node.range[0], to: node.range[1] };
}

function readMap(walk: Walk, map: YAMLMap, container: boolean): void {
  for (const { key, value } of map.items) {
    if (!isScalar(key) || typeof key.value !== 'string') continue;
    if (key.value === 'images' && isSeq(value)) readRewrites(walk, value);
    const text = scalarText(value);
    if (text === undefined) continue;
    if (key.value === 'image') {
      if (looksLikeImage(text.text, container ? 'any' : 'tagged')) add(walk, text, true);
      if (container) checkPull(walk, map, text);
    } else if (VARIABLE.test(key.value) && looksLikeImage(text.text, 'hosted')) add(walk, text, false);
  }
  const [name, value] = [textUnder(map, 'name'), textUnder(map, 'value')];
  if (name !== undefined && value !== undefined && VARIABLE.test(name.text) && looksLikeImage(value.text, 'hosted')) {
    add(walk, value, false);
  }
}

function add({ images, base }: Walk, { text, from, to }: Text, sure: boolean): void {
  if (images.uses.length < MAX_USES) images.uses.push({ text, sure, from: base + from, to: base + to });
}

/** Many fields are named `image`; outside containers only values that look like an image reference count. */
function looksLikeImage(text: string, written: 'any' | 'tagged' | 'hosted'): boolean {
  // `${…}` was replaced by a run of x before parsing, so such values are unknown.
  if (text === '' || /xxxx|__|\$/.test(text) || typeof parseImageRef(text) === 'string') return false;
  if (written === 'any') return true;
  const pinned = /:[^/]+$|@/.test(text);
  return written === 'tagged' ? pinned : pinned && HOST.test(text);
}

function checkPull({ images, base }: Walk, map: YAMLMap, image: Text): void {
  const policy = textUnder(map, 'imagePullPolicy');
  const ref = parseImageRef(image.text);
  const latest = typeof ref !== 'string' && ref.digest === undefined && ref.tag === 'latest';
  if (policy?.text !== 'Always' && !(policy === undefined && latest && looksLikeImage(image.text, 'any'))) return;
  const { from, to } = policy ?? image;
  const because = policy === undefined ? `${quoted(image.text)} has the tag latest, which` : 'imagePullPolicy: Always';
  images.remarks.push({
    code: 'image/pull-always',
    from: base + from,
    to: base + to,
    message: `${because} requires a registry at every start`,
    hint: 'imagePullPolicy: IfNotPresent',
  });
}

function readRewrites({ images, base }: Walk, list: YAMLSeq): void {
  for (const item of list.items) {
    if (!isMap(item)) continue;
    const [name, newName] = [textUnder(item, 'name'), textUnder(item, 'newName')];
    const [tag, digest] = [textUnder(item, 'newTag'), textUnder(item, 'digest')];
    if (name === undefined || (newName ?? tag ?? digest) === undefined) continue;
    const spot = digest ?? tag ?? newName ?? name;
    const suffix = digest === undefined ? tag && `:${tag.text}` : `@${digest.text}`;
    const at: Spot = { from: base + spot.from, to: base + spot.to };
    images.rewrites.push({ name: name.text, newName: newName?.text, suffix, ...at });
  }
}
