/** `curlew serve`: serves a store over HTTP: packages, bundles, online installs, images. */
import { SERVE } from '../../requests/serve.ts';
import { counted } from '../../core/counted.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

const DETAILS = `Bundles are generated on request and not stored: the packages determine their size and every byte. Interrupted downloads can be resumed, even after the server restarts.

ID is the output of curlew installer id for a spec, or NAME of a spec NAME.yaml. Add specs as files, or with --allow-post: curl -H "Authorization: Bearer $TOKEN" --data-binary @installer.yaml URL/installer.

On SIGTERM or SIGINT the server stops accepting connections, and exits when running responses have finished.`;

export const command = commandFor(SERVE, {
  details: DETAILS,
  examples: [
    'curlew serve --store /srv/dist',
    'curlew serve --store s3://bucket/dist --redirect https://cdn.example/dist',
    'curlew serve --store /srv/dist --tls-cert site.crt --tls-key site.key',
    'curlew serve --store /srv/dist --allow-post --token-file token',
    'curlew serve --store s3://bucket/dist --key release.pub',
  ],
  run: async ({ request }, context) => (await import('../../app/serve.ts')).serve(request, context),
  render: ({ requests, bytes }) => `${counted(requests, 'request')}, ${formatBytes(bytes)}`,
});
