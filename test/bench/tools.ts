/** Names of `scripts/tools` that a section of the benchmarks needs. */
export const TOOLS: Readonly<Record<string, readonly string[]>> = {
  images: ['crane'],
  packages: ['bare'],
  publish: ['versitygw', 'rclone'],
  channel: ['debian', 'api-server'],
  fleet: ['debian', 'api-server', 'helm-4'],
};
