# Berth in a container, as a legacy plugin: `make image`, then
#
#   docker run -d --name berth --restart always --network host \
#     -v /run/docker/plugins:/run/docker/plugins -v /var/run/docker.sock:/var/run/docker.sock \
#     -v /run/berth:/run/berth -v /var/lib/berth:/var/lib/berth berth
#   docker network create --ipam-driver berth NAME
#
# The network must be the host's: Berth looks at its routes before it chooses a subnet. By docker.sock it reads what runs,
# and from it knows whose address is whose; who gives it no such right leaves that out (BERTH_DOCKER_HOST=none). An engine that starts needs the
# plugin before it can start a container, this one included: it waits 15 seconds for each network of ours then. The
# systemd units (`make install`) and the managed plugin (`make plugin`) do not have that wait.
FROM scratch
COPY bin/berth /berth
ENTRYPOINT ["/berth", "serve"]
