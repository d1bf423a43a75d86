# Podman and Buildah may need the full name of the image. Build with --format docker there, or the health check
# is left out.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=""
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X example.com/events.version=$VERSION" -o /out/eventsd ./cmd/eventsd && \
    mkdir /out/data

FROM scratch
ARG VERSION=""
LABEL org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.title="eventsd" \
      org.opencontainers.image.description="An API for events and guest lists, and its test double"
COPY --from=build /out/eventsd /eventsd
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV EVENTSD_ADDR=:8080 EVENTSD_DATA=/data/events.json EVENTSD_FIRST_KEY=false
EXPOSE 8080
VOLUME /data
HEALTHCHECK --interval=10s --timeout=3s CMD ["/eventsd", "health"]
ENTRYPOINT ["/eventsd"]
CMD ["serve"]
