/** Rules about what a Manifest leaves open, which a build takes as it comes. Pure. */
import { parseImageRef } from '../../core/image-ref.ts';
import type { Request } from '../directives.ts';
import { finding, quoted, type Find } from '../rules.ts';

/** Tags that name another image from time to time, whoever publishes it; `latest` has a rule of its own. */
const FLOATING =
  /^(?:main|master|trunk|head|edge|dev|devel|develop|development|nightly|stable|canary|unstable|next|current|snapshot|rolling)$/i;

export function checkPins(requests: readonly Request[], find: Find): void {
  for (const request of requests) {
    if (request.kind === 'image' && request.reference !== undefined) {
      const ref = parseImageRef(request.reference);
      if (typeof ref === 'string' || ref.digest !== undefined || !FLOATING.test(ref.tag ?? '')) continue;
      const message = `the tag ${quoted(ref.tag ?? '')} names another image from time to time`;
      find(finding('image/floating', request.source.place, message, 'name a version, or add @sha256:…'));
    }
    if (request.kind === 'asset' && !request.local && request.digest === undefined) {
      const hint = 'add #sha256=<64 hex digits>; Manifest.lock pins it too';
      find(finding('asset/no-digest', request.source.place, 'nothing says what this file has to be', hint));
    }
  }
}

/** kURL's reader of Manifests on a node drops a last line without its end. */
export function checkFinalNewline(file: string, text: string, find: Find): void {
  if (text === '' || text.endsWith('\n')) return;
  const start = text.lastIndexOf('\n') + 1;
  const place = { file, line: text.split('\n').length, column: text.length - start + 1, length: 1 };
  find(finding('manifest/no-final-newline', place, 'the last line has no line end'));
}
