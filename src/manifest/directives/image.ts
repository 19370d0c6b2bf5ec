/** `image <id> <reference>`: a container image, stored under `images/`. */
import type { Word } from '../../core/diagnostic.ts';
import { formatImageRef, parseImageRef, type ImageRef } from '../../core/image-ref.ts';
import { eachRepeated, refuseExtra, word, type DirectiveRequest, type Directive } from '../directive.ts';
import { quoted, type Find } from '../rules.ts';

export interface ImageRequest extends DirectiveRequest {
  readonly kind: 'image';
  readonly id: Word;
  /** The source in the Manifest. */
  readonly source: Word;
  /** The image in a registry, or the name that the line gives to the image of an archive. */
  readonly ref: ImageRef | undefined;
  /** Path as written, for a local image archive. */
  readonly archive: string | undefined;
  readonly remoteLoad: boolean;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const NO_REMOTE_LOAD = 'no_remote_load';
const PIN = 'name a version: registry/name:tag, or registry/name:tag@sha256:…';

const USAGE = `image <id> <[registry/]name:tag[@sha256:…] or path.tar [name:tag]> [${NO_REMOTE_LOAD}]`;

function checkId(id: Word, find: Find): boolean {
  if (ID.test(id.text) && !id.text.includes('..')) return true;
  const hint = 'letters, digits, ".", "_", "-", no "..", at most 128 characters';
  find('image/id', id.place, `${quoted(id.text)} is not a valid image id`, hint);
  return false;
}

/** The name of an archive's image, which has no digest: that of what is loaded is known only when the package is built. */
function readName(name: Word, find: Find): ImageRef | undefined {
  const ref = parseImageRef(name.text);
  if (typeof ref !== 'string' && ref.digest === undefined) return ref;
  const problem = typeof ref === 'string' ? `does not parse: ${ref}` : 'cannot have a digest';
  find(
    'image/reference',
    name.place,
    `the name of the image in the archive ${problem}`,
    'name:tag, or registry/name:tag',
  );
  return undefined;
}

function readReference(source: Word, find: Find): ImageRef | undefined {
  const ref = parseImageRef(source.text);
  if (typeof ref === 'string') {
    const hint = 'name:tag, registry/name:tag, or registry/name:tag@sha256:<64 hex digits>';
    find('image/reference', source.place, `the image reference does not parse: ${ref}`, hint);
    return undefined;
  }
  if (ref.digest === undefined && ref.tag === 'latest') {
    const written = source.text.endsWith(':latest');
    if (written) find('image/latest', source.place, 'the image of the tag "latest" changes over time', PIN);
    else find('image/untagged', source.place, 'no tag and no digest: this means the tag "latest"', PIN);
  }
  return ref;
}

export const image: Directive<ImageRequest> = {
  keyword: 'image',
  kind: 'image',
  usage: USAGE,
  about:
    'A container image, from a registry or, if the source ends in `.tar`, from an archive of `docker save` next to the Manifest, which is packed as the image only; a name after it takes the place of the names in the archive. ' +
    `\`${NO_REMOTE_LOAD}\`: the image is not expected on other nodes.`,
  yields: '`images/`',
  columns: { needed: 2, most: 4 },
  parse(line, find) {
    const [id, source] = [word(line, 0), word(line, 1)];
    const isArchive = source.text.endsWith('.tar');
    const third = line.words[2];
    const name = isArchive && third?.text !== NO_REMOTE_LOAD ? third : undefined;
    const [flag, ...more] = line.words.slice(name === undefined ? 2 : 3);
    if (!refuseExtra(flag?.text === NO_REMOTE_LOAD ? more[0] : flag, USAGE, find)) return undefined;
    const ref = isArchive ? name && readName(name, find) : readReference(source, find);
    if (isArchive && source.text.startsWith('/')) {
      find('asset/absolute-path', source.place, 'an absolute path works only on this machine');
    }
    const valid = checkId(id, find) && (ref !== undefined || (isArchive && name === undefined));
    if (!valid) return undefined;
    const archive = isArchive ? source.text : undefined;
    const { keyword, place } = line;
    return { kind: 'image', keyword, place, id, source, ref, archive, remoteLoad: flag === undefined };
  },
  check(requests, find) {
    eachRepeated(
      requests,
      ({ id }) => id.text,
      ({ id, source }, first) => {
        const same = source.text === first.source.text;
        const what = same ? 'this image' : 'another image';
        find(
          'image/duplicate-id',
          id.place,
          `line ${first.place.line} already has ${what} with the id ${quoted(id.text)}`,
        );
      },
    );
    eachRepeated(
      requests,
      ({ ref }) => ref && formatImageRef(ref),
      ({ id, source }, first) => {
        if (id.text === first.id.text) return;
        const message = `line ${first.place.line} already has this image with the id ${quoted(first.id.text)}`;
        find('image/duplicate-image', source.place, message);
      },
    );
  },
  plan: (requests) =>
    requests.map(({ id, ref, archive, remoteLoad }) => ({
      kind: 'image',
      id: id.text,
      reference: ref && formatImageRef(ref),
      archive,
      remoteLoad,
    })),
};
